"""The shares of a cluster, one row for each GPU of each container: what it may use, and what it uses."""

from msgspec import Struct

from lamina.ports.kube import Object
from lamina.report.cluster_use import ClusterUse, ShareFigures
from lamina.report.cluster_view import ClusterView
from lamina.report.shares import HeldShare, shares_with_figures


class ShareEntry(Struct, frozen=True, kw_only=True):
    """One share. Memory is in MiB, compute in percent of the GPU's time; None is what is not known."""

    namespace: str
    pod: str
    container: str
    """For a claim, `<claim>/<request>`."""
    node: str
    index: int | None
    """Of the GPU; None if its node does not list it."""
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
    models = {gpu.uuid: gpu.model for inventory in cluster.inventories.values() for gpu in inventory.gpus}
    models |= {uuid: load.model for uuid, load in use.gpus.items() if uuid not in models}
    rows = [
        _row(pod, share, models.get(share.gpu, ""), figures)
        for pod in cluster.pods
        for share, figures in shares_with_figures(pod, cluster, use)
    ]
    return sorted(rows, key=lambda row: (row.node, row.namespace, row.pod, row.container, row.index or 0))


def _row(pod: Object, share: HeldShare, model: str, figures: ShareFigures | None) -> ShareEntry:
    return ShareEntry(
        namespace=pod["metadata"]["namespace"],
        pod=pod["metadata"]["name"],
        container=share.container,
        node=pod["spec"]["nodeName"],
        index=share.index,
        model=model,
        limit_mib=share.limit_mib,
        used_mib=share.used_mib,
        peak_mib=share.peak_mib,
        cores=share.compute_percent,
        busy_percent=figures.busy_percent if figures else None,
        refusals=figures.refusals if figures else None,
    )
