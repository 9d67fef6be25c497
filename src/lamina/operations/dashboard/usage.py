"""What containers use of their shares, by the metrics of agents, and its place in the document."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from lamina.core.gpus import Mode
from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    GpuCard,
    GpuPart,
    NodeCard,
    PodCard,
    ShareCard,
)
from lamina.report import compute
from lamina.report.cluster_use import ClusterUse, GpuLoad, ShareFigures


def with_usage(document: ClusterDocument, use: ClusterUse) -> ClusterDocument:
    """The document with what is known of the use of each share, and with the devices that kubelet allocated."""
    if not use.shares and not use.gpus:
        return document
    pods = {uid: _pod(card, use) for uid, card in document.pods.items()}
    used = {(uid, row.gpu): amount for uid, card in pods.items() for row, amount in _used(card)}
    nodes = {name: _node(card, used, use) for name, card in document.nodes.items()}
    figures = _with_sums(document, use.gpus)
    return with_native_shares(msgspec.structs.replace(document, cluster=figures, pods=pods, nodes=nodes), use)


def _with_sums(document: ClusterDocument, loads: Mapping[str, GpuLoad]) -> ClusterFigures:
    """The figures, with the use of all GPUs whose use is known, and how many nodes have others."""
    used = {uuid: load.used_mib for uuid, load in loads.items() if load.used_mib is not None}
    busy = [load.busy_percent for load in loads.values() if load.busy_percent is not None]
    missing = sum(any(gpu.uuid not in used for gpu in node.gpus) for node in document.nodes.values())
    return msgspec.structs.replace(
        document.cluster,
        used_mib=sum(used.values()) if used else None,
        busy_percent=round(sum(busy) / len(busy), 1) if busy else None,
        nodes_without_use=missing if used else 0,
    )


def _pod(card: PodCard, use: ClusterUse) -> PodCard:
    rows = tuple(_row(row, _figures(card, row, use)) for row in card.shares)
    return msgspec.structs.replace(card, shares=rows) if rows else card


def _figures(card: PodCard, row: ShareCard, use: ClusterUse) -> ShareFigures | None:
    """A MIG device has a UUID of its own, so a container's only share is found by its container."""
    holder = card.namespace, card.name, row.container
    only = sum(each.container == row.container for each in card.shares) == 1
    return use.share(holder, row.gpu) if only else use.shares.get(holder, {}).get(row.gpu)


def _row(row: ShareCard, figures: ShareFigures | None) -> ShareCard:
    if figures is None:
        return row
    return msgspec.structs.replace(
        row,
        used_mib=figures.used_mib,
        peak_mib=figures.peak_mib,
        busy_percent=_rounded(figures.busy_percent),
        borrowed_mib=figures.borrowed_mib,
        spilled_mib=figures.spilled_mib,
        limit_mib=figures.limit_mib,
    )


def _used(card: PodCard) -> Iterator[tuple[ShareCard, int]]:
    """Each share once, with what all shares of the pod on its GPU use."""
    for row in card.shares:
        here = [each.used_mib for each in card.shares if each.gpu == row.gpu and each.used_mib is not None]
        if here:
            yield row, sum(here)


def _node(card: NodeCard, used: Mapping[tuple[str, str], int], use: ClusterUse) -> NodeCard:
    def part(gpu: str, each: GpuPart) -> GpuPart:
        amount = used.get((each.pod, gpu))
        return each if amount is None else msgspec.structs.replace(each, used_mib=amount)

    def loaded(gpu: GpuCard) -> GpuCard:
        load = use.gpus.get(gpu.uuid, _NO_LOAD)
        return msgspec.structs.replace(
            gpu,
            parts=tuple(part(gpu.uuid, each) for each in gpu.parts),
            used_mib=load.used_mib,
            busy_percent=_rounded(load.busy_percent),
        )

    return msgspec.structs.replace(card, gpus=tuple(map(loaded, card.gpus)))


_NO_LOAD = GpuLoad()


def _rounded(percent: float | None) -> int | None:
    return None if percent is None else round(percent)


def with_native_shares(document: ClusterDocument, use: ClusterUse) -> ClusterDocument:
    """The document with rows for the pods that have such devices, their parts of GPUs, and GPUs with MIG devices."""
    gpus = {gpu.uuid: gpu for node in document.nodes.values() for gpu in node.gpus}
    pods, parts = dict(document.pods), dict[str, list[GpuPart]]()
    for uid, card in document.pods.items():
        if card.node and not card.shares and (rows := tuple(_native_rows(card, use, gpus))):
            pods[uid] = msgspec.structs.replace(card, shares=rows)
            for row in rows:
                parts.setdefault(row.gpu, []).append(_part(uid, card, row))
    divided = _divided_gpus(use, parts, known=gpus)
    nodes = {name: _node_with_parts(card, parts, divided.get(name, ())) for name, card in document.nodes.items()}
    added = [gpu for name, node in nodes.items() for gpu in node.gpus[len(document.nodes[name].gpus) :]]
    figures = msgspec.structs.replace(
        document.cluster,
        gpus=document.cluster.gpus + len(added),
        memory_mib=document.cluster.memory_mib + sum(gpu.capacity_mib for gpu in added),
        granted_mib=document.cluster.granted_mib + sum(gpu.taken_mib for gpu in added),
    )
    return msgspec.structs.replace(document, cluster=figures, pods=pods, nodes=nodes)


def _native_rows(card: PodCard, use: ClusterUse, gpus: Mapping[str, GpuCard]) -> Iterator[ShareCard]:
    for container in card.limits:
        for device, figures in use.shares.get((card.namespace, card.name, container.container), {}).items():
            yield _native_row(card, container.container, device, figures, use, gpus)


def _native_row(
    card: PodCard, container: str, device: str, figures: ShareFigures, use: ClusterUse, gpus: Mapping[str, GpuCard]
) -> ShareCard:
    gpu, part = use.gpu_of(device), use.mig_devices.get(device)
    known, load = gpus.get(gpu), use.gpus.get(gpu)
    mode = Mode.MIG if part else known.mode if known and known.mode else Mode.WHOLE
    return ShareCard(
        container=container,
        node=card.node,
        gpu=gpu,
        index=known.index if known else load.gpu_index if load else None,
        mode=mode,
        memory_mib=figures.limit_mib or 0,
        most_mib=figures.limit_mib or 0,
        physical_mib=figures.limit_mib or 0,
        cores=figures.cores_percent,
        compute_meaning=compute.held_natively(mode, figures.cores_percent),
        mig=part.profile if part else "",
        used_mib=figures.used_mib,
        peak_mib=figures.peak_mib,
        busy_percent=_rounded(figures.busy_percent),
        limit_mib=figures.limit_mib,
    )


def _part(uid: str, card: PodCard, row: ShareCard) -> GpuPart:
    return GpuPart(
        pod=uid,
        name=f"{card.namespace}/{card.name}",
        namespace=card.namespace,
        workload=card.workload,
        memory_mib=row.memory_mib,
        cores=row.cores,
        compute_meaning=row.compute_meaning,
        whole=row.mode == Mode.WHOLE,
        unlimited=row.mode == Mode.TIMESLICE,
        used_mib=row.used_mib,
        instances=(row.mig,) if row.mig else (),
    )


def _node_with_parts(card: NodeCard, parts: Mapping[str, list[GpuPart]], divided: Iterable[GpuCard]) -> NodeCard:
    gpus = [
        msgspec.structs.replace(gpu, parts=(*gpu.parts, *parts[gpu.uuid])) if gpu.uuid in parts else gpu
        for gpu in card.gpus
    ]
    return msgspec.structs.replace(card, gpus=(*gpus, *sorted(divided, key=lambda gpu: gpu.index)))


def _divided_gpus(
    use: ClusterUse, parts: Mapping[str, list[GpuPart]], *, known: Container[str]
) -> dict[str, list[GpuCard]]:
    """By node, GPUs that are on no card because kubelet allocates their MIG devices, which are their slots."""
    found: dict[str, list[GpuCard]] = {}
    for uuid, devices in Counter(part.gpu for part in use.mig_devices.values()).items():
        if uuid in known or (load := use.gpus.get(uuid)) is None:
            continue
        held = tuple(parts.get(uuid, ()))
        card = GpuCard(
            uuid=uuid,
            index=load.gpu_index,
            model=load.model,
            memory_mib=load.memory_mib,
            capacity_mib=load.memory_mib,
            cores_capacity=100,
            slots=devices,
            mode=Mode.MIG,
            healthy=not load.reason,
            reason=load.reason,
            used_mib=load.used_mib,
            busy_percent=_rounded(load.busy_percent),
            taken_mib=sum(part.memory_mib for part in held),
            taken_cores=sum(part.cores for part in held),
            taken_slots=len(held),
            parts=held,
        )
        found.setdefault(load.node, []).append(card)
    return found
