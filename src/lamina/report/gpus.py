"""The GPUs of a cluster, one row each: what is granted, used and free, and who is on it."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, structs

from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant
from lamina.core.ledger import Taken, taken_by
from lamina.core.pod_status import is_over
from lamina.errors import BadInput
from lamina.name_hints import nearest
from lamina.placement.state.nodes import GpuState
from lamina.ports.kube import Object
from lamina.report import compute
from lamina.report.claim_shares import claimed
from lamina.report.cluster_use import ClusterUse, GpuLoad
from lamina.report.cluster_view import ClusterView
from lamina.report.shares import held_shares

IDLE, HEALTHY, CLAIMS = "idle", "healthy", "claims"


class GpuRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One GPU. Memory is in MiB, compute in percent of the GPU's time; None is what is not known.

    What is granted and free is not known where kubelet allocates the GPU by itself.
    """

    node: str
    gpu: str
    index: int
    model: str
    mode: str
    """How containers on the GPU share it, the resource by which kubelet allocates it, `claims` or `idle`."""
    health: str
    """`healthy`, or why it is not."""
    cordoned: bool
    memory_mib: int
    memory_granted_mib: int | None
    memory_free_mib: int | None
    memory_used_mib: int | None
    memory_limit_mib: int | None
    """What the pods may hold together where the GPU has room; granted is what is guaranteed to them."""
    memory_borrowed_mib: int | None
    """What they hold beyond their guarantees."""
    compute_percent: int
    compute_granted_percent: int | None
    compute_free_percent: int | None
    busy_percent: float | None
    slots: int | None
    """None where any number of processes may share the GPU."""
    slots_granted: int | None
    slots_free: int | None
    pods: tuple[str, ...]
    compute_meaning: str = ""
    """What the percentages of its shares mean: `cap`, `lends`, or both."""

    @property
    def compute(self) -> str:
        """What is granted of its compute, in words."""
        granted = "-" if self.compute_granted_percent is None else self.compute_granted_percent
        return ", ".join(filter(None, (f"{granted} of {self.compute_percent} %", self.compute_meaning)))


class _Lending(NamedTuple):
    """By GPU."""

    lendable_mib: dict[str, int]
    borrowed_mib: dict[str, int]


_ORDERS: dict[str, Callable[[GpuRow], Any]] = {
    "node": lambda row: (),
    "model": lambda row: row.model,
    "mode": lambda row: row.mode,
    "granted": lambda row: -(row.memory_granted_mib or 0),
    "used": lambda row: -(row.memory_used_mib or 0),
    "free": lambda row: -(row.memory_free_mib or 0),
    "busy": lambda row: -(row.busy_percent or 0),
    "pods": lambda row: -len(row.pods),
}
ORDERS = tuple(_ORDERS)
"""By what rows can be sorted, the largest amount first; equal ones by node and index."""


def gpu_rows(cluster: ClusterView, use: ClusterUse) -> list[GpuRow]:
    """All GPUs, by node and index. Of those that are partitioned by their node, only agents know."""
    pods, meanings = _on_gpus(cluster, use)
    lending = _lending(cluster, use)
    by_claims = {node: claimed(inventory) for node, inventory in cluster.inventories.items()}
    rows = [
        _with_claims(
            _row(node.name, state, use.gpus.get(state.gpu.uuid), lending, pods.get(state.gpu.uuid, ())),
            by_claims[node.name].get(state.gpu.uuid),
        )
        for node in cluster.nodes
        for state in node.gpus
    ]
    rows += _partitioned_rows(use, {row.gpu for row in rows}, pods)
    rows = [structs.replace(row, compute_meaning=compute.of_gpu(meanings.get(row.gpu, ()))) for row in rows]
    return sorted(rows, key=lambda row: (row.node, row.index))


def mode_of(state: GpuState) -> str:
    """`claims` where ResourceClaims have part of the GPU or are about to, the mode that its agent has published, or
    what grants mean until then; empty while it is idle."""
    if state.claimed:
        return CLAIMS
    if state.gpu.mode is not None:
        return state.gpu.mode.value
    if state.taken.instances:
        return Mode.MIG.value
    if state.taken.whole:
        return Mode.WHOLE.value
    return Mode.QUOTA.value if state.busy else ""


def in_order(rows: Iterable[GpuRow], order: str) -> list[GpuRow]:
    """The rows in another order, one of `ORDERS`."""
    return sorted(rows, key=lambda row: (_ORDERS[order](row), row.node, row.index))


def of_node(rows: Sequence[GpuRow], node: str, cluster: ClusterView) -> list[GpuRow]:
    """The rows of one node. Raises BadInput where no node of that name has an inventory."""
    if node not in cluster.inventories:
        raise BadInput(f"no node {node} offers GPUs{nearest(node, cluster.inventories)}")
    return [row for row in rows if row.node == node]


def _row(node: str, state: GpuState, load: GpuLoad | None, lending: _Lending, pods: Sequence[str]) -> GpuRow:
    use, gpu, taken = load or GpuLoad(), state.gpu, state.taken
    known = gpu.by_grant
    return GpuRow(
        node=node,
        gpu=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        mode=mode_of(state) or gpu.native_resource or IDLE,
        health=HEALTHY if gpu.healthy else gpu.reason or "not healthy",
        cordoned=gpu.cordoned,
        memory_mib=gpu.capacity_mib,
        memory_granted_mib=taken.memory_mib if known else None,
        memory_free_mib=state.shareable_memory if known else None,
        memory_used_mib=use.used_mib,
        memory_limit_mib=taken.memory_mib + lending.lendable_mib.get(gpu.uuid, 0) if known else None,
        memory_borrowed_mib=None if load is None else lending.borrowed_mib.get(gpu.uuid, 0),
        compute_percent=gpu.cores_capacity,
        compute_granted_percent=taken.cores if known else None,
        compute_free_percent=state.shareable_cores if known else None,
        busy_percent=use.busy_percent,
        slots=gpu.slots,
        slots_granted=taken.slots if known else None,
        slots_free=state.free_slots if known else None,
        pods=tuple(pods),
    )


def _partitioned_rows(use: ClusterUse, known: Container[str], pods: Mapping[str, Sequence[str]]) -> Iterator[GpuRow]:
    """GPUs whose MIG devices kubelet allocates: these devices are the slots, and memory is granted with them."""
    held = {device for shares in use.shares.values() for device in shares}
    devices: dict[str, list[tuple[int, bool]]] = {}
    for device, part in use.mig_devices.items():
        devices.setdefault(part.gpu, []).append((part.memory_mib, device in held))
    for uuid, found in devices.items():
        load = use.gpus.get(uuid)
        if load is None or uuid in known:
            continue
        granted_mib = sum(memory_mib for memory_mib, taken in found if taken)
        granted = sum(taken for _, taken in found)
        yield GpuRow(
            node=load.node,
            gpu=uuid,
            index=load.gpu_index,
            model=load.model,
            mode=Mode.MIG.value,
            health=load.reason or HEALTHY,
            cordoned=False,
            memory_mib=load.memory_mib,
            memory_granted_mib=granted_mib,
            memory_free_mib=sum(memory_mib for memory_mib, _ in found) - granted_mib,
            memory_used_mib=load.used_mib,
            memory_limit_mib=granted_mib,
            memory_borrowed_mib=0,
            compute_percent=100,
            compute_granted_percent=None,
            compute_free_percent=None,
            busy_percent=load.busy_percent,
            slots=len(found),
            slots_granted=granted,
            slots_free=len(found) - granted,
            pods=tuple(pods.get(uuid, ())),
        )


def _with_claims(row: GpuRow, taken: Taken | None) -> GpuRow:
    """A GPU that ResourceClaims have parts of: these, and not slots, are what others cannot have.

    What is free of one with MIG devices depends on their places.
    """
    if taken is None:
        return row
    claimed_row = structs.replace(row, memory_granted_mib=taken.memory_mib, memory_limit_mib=taken.memory_mib)
    if taken.instances:
        return claimed_row
    return structs.replace(
        claimed_row,
        memory_free_mib=max(0, row.memory_mib - taken.memory_mib),
        compute_granted_percent=taken.cores,
        compute_free_percent=0 if taken.whole else max(0, row.compute_percent - taken.cores),
    )


def _lending(cluster: ClusterView, use: ClusterUse) -> _Lending:
    records = (record for pod in _alive(cluster) for record in cluster.ledger.grants_of(pod["metadata"]["uid"]))
    return _Lending(lendable_mib(record.grant.containers for record in records), borrowed_mib(use))


def _alive(cluster: ClusterView) -> Iterator[Object]:
    return (pod for pod in cluster.pods if not is_over(pod))


def _on_gpus(cluster: ClusterView, use: ClusterUse) -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """The pods that hold part of each GPU, those included whose processes outlive them, or for which it is held; and
    what their shares of compute mean."""
    found: dict[str, set[str]] = {}
    meanings: dict[str, set[str]] = {}
    for pod in _alive(cluster):
        meta = pod["metadata"]
        grants = [record.grant for record in cluster.ledger.grants_of(meta["uid"])]
        granted = [share.gpu for grant in grants for container in grant.containers for share in container.shares]
        shares = held_shares(pod, cluster, use)
        for gpu in (*granted, *(share.gpu for share in shares)):
            found.setdefault(gpu, set()).add(f"{meta['namespace']}/{meta['name']}")
        for row in shares:
            meanings.setdefault(row.gpu, set()).add(row.compute_meaning)
    for _, room in cluster.holds:
        found.setdefault(room.gpu, set()).add(f"{room.namespace}/{room.pod} (held)")
    for _, survivor in cluster.survivors():
        for container in survivor.containers:
            for share in container.shares:
                found.setdefault(share.gpu, set()).add(f"{survivor.namespace}/{survivor.pod}")
    return {gpu: sorted(names) for gpu, names in found.items()}, meanings


def lendable_mib(pods: Iterable[tuple[ContainerGrant, ...]]) -> dict[str, int]:
    """By GPU, what the containers of these pods may hold beyond their requests, counted as requests are."""
    found: dict[str, int] = {}
    for containers in pods:
        shares = [share for container in containers for share in container.shares]
        if all(share.limit_mib == share.memory_mib for share in shares):
            continue
        requested = taken_by(containers)
        for gpu, taken in taken_by(map(_at_limit, containers)).items():
            found[gpu] = found.get(gpu, 0) + taken.memory_mib - requested[gpu].memory_mib
    return found


def borrowed_mib(use: ClusterUse) -> dict[str, int]:
    """By GPU, what containers hold beyond their requests. GPUs without a reported container are left out."""
    found: dict[str, int] = {}
    for shares in use.shares.values():
        for gpu, share in shares.items():
            found[gpu] = found.get(gpu, 0) + share.borrowed_mib
    return found


def _at_limit(container: ContainerGrant) -> ContainerGrant:
    shares = tuple(structs.replace(share, memory_mib=share.limit_mib) for share in container.shares)
    return structs.replace(container, shares=shares)
