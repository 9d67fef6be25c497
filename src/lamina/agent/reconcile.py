"""At the start: what lies on the disk is what the record knows, or it goes.

Specs with names that the record does not know, and half-written ones, are removed: kubelet may know such a name, but a
container must not start from a spec that nobody answers for. Folders that the record does not know are removed too,
unless a pod of this node has their UID: a running container may use them. Whatever cannot be told stays.

A name that is bound to a container, with or without its spec and folder, needs nothing: kubelet asks again before each
start, and all is made anew then.
"""

import logging

from lamina.agent import cdi
from lamina.agent.cluster import Cluster
from lamina.agent.libraries import remove_unused
from lamina.agent.plan import Places, folder_name
from lamina.agent.record import Record
from lamina.errors import Outside
from lamina.ports.files import Files

log = logging.getLogger(__name__)


async def reconcile(record: Record, cluster: Cluster, places: Places, files: Files) -> None:
    """Remove what is not known. Raises Outside when the file system refuses."""
    names = {allocation.name for allocation in record.allocations}
    for file in files.names(places.cdi):
        if cdi.ours(file) and cdi.name_in(file) not in names:
            log.warning("Removing %s, which the record does not know", file)
            files.remove(places.cdi / file)
    remove_unused(places.libraries, places.cdi, files)
    bounds = [allocation.bound for allocation in record.allocations if allocation.bound]
    known = {folder_name(bound.pod_uid, bound.container) for bound in bounds}
    unknown = [folder for folder in files.names(places.containers) if folder not in known]
    if not unknown:
        return
    try:
        living = await cluster.pods_here()
    except Outside as error:
        log.warning("Folders that the record does not know stay, for nobody says whose they are: %s", error)
        return
    for folder in unknown:
        if folder.partition("_")[0] in living:
            log.warning("Keeping %s, which the record does not know but a pod of this node may use", folder)
            continue
        log.warning("Removing %s, which the record does not know", folder)
        files.remove_tree(places.containers / folder)
