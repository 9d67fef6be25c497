"""The pods that request GPUs, one row each: what they hold, or why they are pending."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from lamina.dialects import parse
from lamina.errors import BadInput
from lamina.model.gpus import Inventory, Mode
from lamina.model.grants import ContainerGrant, Share
from lamina.operations.cluster_view import ClusterView
from lamina.operations.held_claims import requests_by_claims, shares_by_claims
from lamina.operations.native_capacity import counted
from lamina.operations.pending_reasons import waiting_because
from lamina.ports.kube import Object

_ENDED = ("Succeeded", "Failed")
_SURVIVES = "it is deleted, but its processes still run, so its shares count"
DELETED, REFUSED = "Deleted", "Refused"


class HeldShare(Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of one GPU that a container holds. Memory is in MiB, compute in percent of the GPU's time."""

    container: str
    """For a claim, `<claim>/<request>`."""
    gpu: str
    index: int | None
    """None if its node no longer lists the GPU."""
    mode: str
    memory_mib: int
    limit_mib: int
    """How much it may hold while the GPU has room; otherwise as `memory_mib`."""
    compute_percent: int | None
    """None for a whole GPU; 0 where compute is shared without a limit."""
    mig: str = ""
    """The profile of its MIG instance and where it starts."""
    init: bool = False
    """Of an init container that ends before the others start; on each GPU, the larger of both counts."""


class PodEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """One pod that requests GPUs, a deleted one whose processes still run, or a workload whose pods are refused."""

    namespace: str
    pod: str
    """For a workload, its kind and name, such as `deployment/web`."""
    status: str
    node: str
    memory_mib: int
    """The sum over its shares."""
    shares: tuple[HeldShare, ...]
    devices: Mapping[str, int]
    """What kubelet allocates by itself, counted by resource."""
    reason: str
    """Why it waits or cannot start; empty for a pod that does neither."""


Selected = Callable[[Mapping[str, str]], bool]


def pod_rows(cluster: ClusterView, namespace: str | None, selected: Selected | None = None) -> list[PodEntry]:
    """The pods of one namespace or of all (None): running ones first, then pending ones, and deleted ones last.

    Of deleted pods the labels are not known, so that a selector leaves them out.
    """
    pods = (pod for pod in sorted(cluster.pods, key=_order) if namespace in (None, pod["metadata"]["namespace"]))
    rows = [
        _row(pod, cluster)
        for pod in pods
        if (selected is None or selected(pod["metadata"].get("labels") or {})) and _requests_gpus(pod, cluster)
    ]
    return rows if selected is not None else [*rows, *_deleted(cluster, namespace)]


def _deleted(cluster: ClusterView, namespace: str | None) -> Iterator[PodEntry]:
    for node, survivor in cluster.survivors(namespace):
        yield _entry(
            (survivor.namespace, survivor.pod, DELETED, node),
            _held(survivor.containers, cluster.inventories[node]),
            reason=_SURVIVES,
        )


def refused_row(namespace: str, workload: str, reason: str) -> PodEntry:
    """The row of a workload, given as kind/name, none of whose pods is admitted."""
    return _entry((namespace, workload, REFUSED, ""), (), reason=reason)


def _order(pod: Object) -> tuple[bool, str, str]:
    """Running pods first, pending ones last."""
    return (not pod["spec"].get("nodeName"), pod["metadata"]["namespace"], pod["metadata"]["name"])


def _requests_gpus(pod: Object, cluster: ClusterView) -> bool:
    if pod["metadata"]["uid"] in cluster.grants or shares_by_claims(pod, cluster.inventories):
        return True
    try:
        return parse(pod, cluster.config) is not None or bool(counted(pod))
    except BadInput:
        return True


def _row(pod: Object, cluster: ClusterView) -> PodEntry:
    """By grant and claims, or the native devices that kubelet allocated.

    A pod that has ended holds nothing, although its grant remains.
    """
    meta, node = pod["metadata"], pod["spec"].get("nodeName", "")
    phase = pod.get("status", {}).get("phase", "Unknown")
    grant = cluster.grants.get(meta["uid"])
    runs = bool(node) and phase not in _ENDED
    held = [*(grant.containers if grant and runs else ()), *requests_by_claims(pod, cluster.inventories)]
    return _entry(
        (meta["namespace"], meta["name"], phase, node),
        _held(held, cluster.inventories.get(node)),
        counted(pod) if runs and not (grant or held) else {},
        waiting_because(cluster, pod),
    )


def _entry(
    where: tuple[str, str, str, str], shares: tuple[HeldShare, ...], devices: Mapping[str, int] = {}, reason: str = ""
) -> PodEntry:
    namespace, pod, status, node = where
    return PodEntry(
        namespace=namespace,
        pod=pod,
        status=status,
        node=node,
        memory_mib=sum(share.memory_mib for share in shares),
        shares=shares,
        devices=devices,
        reason=reason,
    )


def _held(containers: Iterable[ContainerGrant], inventory: Inventory | None) -> tuple[HeldShare, ...]:
    indices = {gpu.uuid: gpu.index for gpu in inventory.gpus} if inventory else {}
    return tuple(_share(each, share, indices) for each in containers for share in each.shares)


def _share(container: ContainerGrant, share: Share, indices: Mapping[str, int]) -> HeldShare:
    return HeldShare(
        container=container.name,
        gpu=share.gpu,
        index=indices.get(share.gpu),
        mode=share.mode.value,
        memory_mib=share.memory_mib,
        limit_mib=share.limit_mib,
        compute_percent=None if share.mode is Mode.WHOLE else share.cores,
        mig=f"{share.mig.profile} at {share.mig.start}" if share.mig else "",
        init=container.init and not container.sidecar,
    )
