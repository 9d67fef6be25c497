"""What workloads could request by what they used, and what the cluster would gain; and which pods are idle. Pure."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.pod_status import is_over
from lamina.core.workloads import workload_of
from lamina.operations.advise.use_histories import HistoryOwner, PastUse, UseOverTime
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.report.pods import Selected

_MEMORY_ROOM, _COMPUTE_ROOM = 1.1, 1.2
"""By how much advice exceeds what was used."""
_MEMORY_STEP_MIB, _COMPUTE_STEP = 256, 5


class ShareAdvice(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of a workload that requests more than it used. Memory is in MiB, compute in percent of a GPU.

    `memory_gain` and `compute_gain` are parts of a GPU, of all its shares together.
    """

    namespace: str
    kind: str
    workload: str
    container: str
    shares: int = 0
    memory_mib: int
    memory_peak_mib: int
    memory_advised_mib: int
    cores: int
    compute_percent: float | None
    cores_advised: int
    memory_gain: float = 0.0
    compute_gain: float = 0.0


class IdleShare(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that holds part of a GPU and has not used its time."""

    namespace: str
    pod: str
    kind: str
    workload: str
    node: str
    gpu: str
    index: int | None
    memory_mib: int
    idle_s: float


class _Held(NamedTuple):
    """One share of one container."""

    pod: Object
    node: str
    container: ContainerGrant
    share: Share


def advise_shares(
    cluster: ClusterView,
    use: UseOverTime,
    *,
    namespace: str = "",
    selected: Selected | None = None,
    min_s: float = 0.0,
) -> list[ShareAdvice]:
    """The largest gain first. Only containers whose use is known for `min_s` seconds, without MIG devices; with
    `selected` only of pods with such labels."""
    capacity = {gpu.uuid: gpu.memory_mib or 0 for each in cluster.inventories.values() for gpu in each.gpus}
    found: dict[HistoryOwner, ShareAdvice] = {}
    for held in _held(cluster, namespace, selected):
        of = workload_of(held.pod)
        owner = HistoryOwner(held.pod["metadata"]["namespace"], of.kind, of.name, held.container.name)
        history = use.histories.get(owner)
        if history is None or history.observed_s < min_s or held.share.mode is Mode.MIG:
            continue
        if history.memory_peak_mib is None:
            continue
        found[owner] = _with_share(found.get(owner), owner, history, held, capacity.get(held.share.gpu, 0))
    gaining = [advice for advice in found.values() if advice.memory_gain > 0 or advice.compute_gain > 0]
    return sorted(gaining, key=lambda advice: -max(advice.memory_gain, advice.compute_gain))


def idle_shares(
    cluster: ClusterView, use: UseOverTime, *, namespace: str = "", selected: Selected | None = None, min_s: float
) -> list[IdleShare]:
    """The pods that have not used a GPU of theirs for `min_s` seconds, the longest first; with `selected` only those
    with such labels."""
    indices = {gpu.uuid: gpu.index for each in cluster.inventories.values() for gpu in each.gpus}
    found: dict[tuple[str, str, str], IdleShare] = {}
    for held in _held(cluster, namespace, selected):
        meta, gpu = held.pod["metadata"], held.share.gpu
        key = meta["namespace"], meta["name"], gpu
        idle_s = use.idle_s.get(key)
        if idle_s is None or idle_s < min_s:
            continue
        of, before = workload_of(held.pod), found.get(key)
        found[key] = IdleShare(
            namespace=meta["namespace"],
            pod=meta["name"],
            kind=of.kind,
            workload=of.name,
            node=held.node,
            gpu=gpu,
            index=indices.get(gpu),
            memory_mib=held.share.memory_mib + (before.memory_mib if before else 0),
            idle_s=idle_s,
        )
    return sorted(found.values(), key=lambda share: -share.idle_s)


def _held(cluster: ClusterView, namespace: str, selected: Selected | None) -> Iterator[_Held]:
    """The shares of pods that are on a node and have not ended."""
    for pod in cluster.pods:
        node = pod["spec"].get("nodeName")
        ended = is_over(pod)
        grant = cluster.grants.get(pod["metadata"]["uid"])
        chosen = selected is None or selected(pod["metadata"].get("labels") or {})
        if node and grant and chosen and not ended and namespace in ("", pod["metadata"]["namespace"]):
            for container in grant.containers:
                yield from (_Held(pod, node, container, share) for share in container.shares)


def _with_share(
    before: ShareAdvice | None, owner: HistoryOwner, history: PastUse, held: _Held, capacity_mib: int
) -> ShareAdvice:
    """The advice with one more share of the container."""
    size, share = held.container.size, held.share
    memory = size.memory_mib if size else share.memory_mib
    cores = 100 if share.mode is Mode.WHOLE else size.cores if size else share.cores
    peak_mib = history.memory_peak_mib or 0
    memory_advised = min(memory, _rounded(peak_mib * _MEMORY_ROOM, _MEMORY_STEP_MIB))
    known = history.compute_percent
    cores_advised = cores if known is None else min(cores, _rounded(known * _COMPUTE_ROOM, _COMPUTE_STEP))
    return ShareAdvice(
        **owner._asdict(),
        shares=1 + (before.shares if before else 0),
        memory_mib=max(memory, before.memory_mib if before else 0),
        memory_peak_mib=peak_mib,
        memory_advised_mib=max(memory_advised, before.memory_advised_mib if before else 0),
        cores=max(cores, before.cores if before else 0),
        compute_percent=known,
        cores_advised=max(cores_advised, before.cores_advised if before else 0),
        memory_gain=(before.memory_gain if before else 0)
        + ((memory - memory_advised) / capacity_mib if capacity_mib else 0),
        compute_gain=(before.compute_gain if before else 0) + (cores - cores_advised) / 100,
    )


def _rounded(amount: float, step: int) -> int:
    """The next multiple, at least one."""
    return max(step, math.ceil(amount / step) * step)
