"""The shares of a cluster, one row for each GPU of each container: what it may use, and what it uses."""

from collections.abc import Iterator

from msgspec import Struct

from lamina.model.gpus import Mode
from lamina.model.grants import ContainerGrant, Share
from lamina.operations.agent_metrics import ClusterUse, ShareFigures
from lamina.operations.cluster_view import ClusterView

_ENDED = ("Succeeded", "Failed")


class ShareEntry(Struct, frozen=True, kw_only=True):
    """One share. Memory is in MiB, compute in percent of the GPU's time; None is what is not known."""

    namespace: str
    pod: str
    container: str
    node: str
    index: int | None
    """Of the GPU; None if its node no longer lists it."""
    model: str
    limit_mib: int
    used_mib: int | None
    peak_mib: int | None
    cores: int | None
    """None for a whole GPU."""
    busy_percent: float | None
    refusals: int | None


def share_rows(cluster: ClusterView, use: ClusterUse) -> list[ShareEntry]:
    """The shares of all pods that are on a node and have not ended, by node and pod."""
    rows = [
        _row(cluster, use, pod["metadata"]["namespace"], pod["metadata"]["name"], node, container, share)
        for pod in cluster.pods
        if (node := pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in _ENDED
        for container, share in _shares(cluster, pod["metadata"]["uid"])
    ]
    return sorted(rows, key=lambda row: (row.node, row.namespace, row.pod, row.container, row.index or 0))


def _shares(cluster: ClusterView, uid: str) -> Iterator[tuple[ContainerGrant, Share]]:
    grant = cluster.grants.get(uid)
    for container in grant.containers if grant else ():
        yield from ((container, share) for share in container.shares)


def _row(
    cluster: ClusterView, use: ClusterUse, namespace: str, pod: str, node: str, container: ContainerGrant, share: Share
) -> ShareEntry:
    inventory = cluster.inventories.get(node)
    gpu = next((gpu for gpu in inventory.gpus if gpu.uuid == share.gpu), None) if inventory else None
    used: ShareFigures | None = use.share((namespace, pod, container.name), share.gpu)
    return ShareEntry(
        namespace=namespace,
        pod=pod,
        container=container.name,
        node=node,
        index=gpu.index if gpu else None,
        model=gpu.model if gpu else "",
        limit_mib=share.limit_mib,
        used_mib=used.used_mib if used else None,
        peak_mib=used.peak_mib if used else None,
        cores=None if share.mode is Mode.WHOLE else share.cores,
        busy_percent=used.busy_percent if used else None,
        refusals=used.refusals if used else None,
    )
