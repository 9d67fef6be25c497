"""Devices that kubelet allocated by itself, which only the agents know: time slices, clients of MPS, MIG devices and
whole GPUs, in the rows of their pods and on the map."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from lamina.core.gpus import Mode
from lamina.operations.dashboard.document import ClusterDocument, GpuCard, GpuPart, NodeCard, PodCard, ShareCard
from lamina.report.cluster_use import ClusterUse, ShareFigures


def with_native_shares(document: ClusterDocument, use: ClusterUse) -> ClusterDocument:
    """The document with rows for the pods that have such devices, their parts of GPUs, and GPUs with MIG devices."""
    gpus = {gpu.uuid: gpu for node in document.nodes.values() for gpu in node.gpus}
    pods, parts = dict(document.pods), dict[str, list[GpuPart]]()
    for uid, card in document.pods.items():
        if card.node and not card.shares and (rows := tuple(_rows(card, use, gpus))):
            pods[uid] = msgspec.structs.replace(card, shares=rows)
            for row in rows:
                parts.setdefault(row.gpu, []).append(_part(uid, card, row))
    divided = _divided_gpus(use, parts, known=gpus)
    nodes = {name: _node(card, parts, divided.get(name, ())) for name, card in document.nodes.items()}
    added = [gpu for name, node in nodes.items() for gpu in node.gpus[len(document.nodes[name].gpus) :]]
    figures = msgspec.structs.replace(
        document.cluster,
        gpus=document.cluster.gpus + len(added),
        memory_mib=document.cluster.memory_mib + sum(gpu.capacity_mib for gpu in added),
        granted_mib=document.cluster.granted_mib + sum(gpu.taken_mib for gpu in added),
    )
    return msgspec.structs.replace(document, cluster=figures, pods=pods, nodes=nodes)


def _rows(card: PodCard, use: ClusterUse, gpus: Mapping[str, GpuCard]) -> Iterator[ShareCard]:
    for container in card.limits:
        for device, figures in use.shares.get((card.namespace, card.name, container.container), {}).items():
            yield _row(card, container.container, device, figures, use, gpus)


def _row(
    card: PodCard, container: str, device: str, figures: ShareFigures, use: ClusterUse, gpus: Mapping[str, GpuCard]
) -> ShareCard:
    gpu, part = use.gpu_of(device), use.mig_devices.get(device)
    known, load = gpus.get(gpu), use.gpus.get(gpu)
    return ShareCard(
        container=container,
        node=card.node,
        gpu=gpu,
        index=known.index if known else load.gpu_index if load else None,
        mode=Mode.MIG if part else known.mode if known and known.mode else Mode.WHOLE,
        memory_mib=figures.limit_mib or 0,
        most_mib=figures.limit_mib or 0,
        physical_mib=figures.limit_mib or 0,
        cores=figures.cores_percent,
        mig=part.profile if part else "",
        used_mib=figures.used_mib,
        peak_mib=figures.peak_mib,
        busy_percent=None if figures.busy_percent is None else round(figures.busy_percent),
        limit_mib=figures.limit_mib,
    )


def _part(uid: str, card: PodCard, row: ShareCard) -> GpuPart:
    return GpuPart(
        pod=uid,
        name=f"{card.namespace}/{card.name}",
        memory_mib=row.memory_mib,
        cores=row.cores,
        whole=row.mode == Mode.WHOLE,
        unlimited=row.mode == Mode.TIMESLICE,
        used_mib=row.used_mib,
        instances=(row.mig,) if row.mig else (),
    )


def _node(card: NodeCard, parts: Mapping[str, list[GpuPart]], divided: Iterable[GpuCard]) -> NodeCard:
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
            taken_mib=sum(part.memory_mib for part in held),
            taken_cores=sum(part.cores for part in held),
            taken_slots=len(held),
            parts=held,
        )
        found.setdefault(load.node, []).append(card)
    return found
