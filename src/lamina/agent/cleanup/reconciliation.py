"""At the start of the agent: files that the record does not know are removed.

CDI specs of names that the record does not know, and incomplete ones, are removed: kubelet may know such a name, but no
container must start from a spec that nothing accounts for. Container directories that the record does not know are
removed too, unless a pod of this node has their UID, because a running container may use them. If that cannot be
determined, they stay.

A name that is bound to a container needs nothing, with or without its spec and directory: kubelet calls the agent
before each start, and everything is made again then.
"""

import logging

from lamina.agent.containers import cdi
from lamina.agent.containers.libraries import remove_unused
from lamina.agent.containers.paths import folder_name, folder_names
from lamina.agent.context import NodeContext

log = logging.getLogger(__name__)

_KIND = "unknown file"


async def reconcile(node: NodeContext) -> None:
    """Remove unknown files. What cannot be removed is set aside. Raises Outside if directories cannot be listed."""
    record, paths, files = node.record, node.paths, node.files
    names = record.names
    for file in files.names(paths.cdi):
        if cdi.is_ours(file) and cdi.name_of_file(file) not in names:
            log.warning("Removing %s: the record does not know it", file)
            with node.aside.around(_KIND, file):
                files.remove(paths.cdi / file)
    with node.aside.around(_KIND, str(paths.libraries.folder.parent)):
        remove_unused(paths.libraries, paths.cdi, files)
    known = {folder_name(bound.pod_uid, bound.container) for bound in record.containers}
    unknown = [folder for folder in folder_names(paths.containers, files) if folder not in known]
    if not unknown:
        return
    try:
        pod_uids = await node.cluster.list_pod_uids()
    except Exception as error:
        log.warning("Keeping %d directories that the record does not know: cannot list pods: %s", len(unknown), error)
        return
    for folder in unknown:
        if folder.partition("_")[0] in pod_uids:
            log.warning("Keeping %s: the record does not know it, but a pod of this node may use it", folder)
            continue
        log.warning("Removing %s: the record does not know it", folder)
        with node.aside.around(_KIND, folder):
            files.remove_tree(paths.containers / folder)
