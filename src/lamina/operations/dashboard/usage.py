"""What containers use of their shares, by the metrics of agents, and its place in the document."""

from collections.abc import Iterator, Mapping

import msgspec

from lamina.operations.dashboard.document import ClusterDocument, GpuPart, NodeCard, PodCard, ShareCard
from lamina.operations.dashboard.native_shares import with_native_shares
from lamina.report.cluster_use import ClusterUse, ShareFigures


def with_usage(document: ClusterDocument, use: ClusterUse) -> ClusterDocument:
    """The document with what is known of the use of each share, and with the devices that kubelet allocated."""
    if not use.shares:
        return document
    pods = {uid: _pod(card, use) for uid, card in document.pods.items()}
    used = {(uid, row.gpu): amount for uid, card in pods.items() for row, amount in _used(card)}
    nodes = {name: _node(card, used) for name, card in document.nodes.items()}
    return with_native_shares(msgspec.structs.replace(document, pods=pods, nodes=nodes), use)


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
    busy = None if figures.busy_percent is None else round(figures.busy_percent)
    return msgspec.structs.replace(
        row,
        used_mib=figures.used_mib,
        peak_mib=figures.peak_mib,
        busy_percent=busy,
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


def _node(card: NodeCard, used: Mapping[tuple[str, str], int]) -> NodeCard:
    def part(gpu: str, each: GpuPart) -> GpuPart:
        amount = used.get((each.pod, gpu))
        return each if amount is None else msgspec.structs.replace(each, used_mib=amount)

    gpus = tuple(
        msgspec.structs.replace(gpu, parts=tuple(part(gpu.uuid, each) for each in gpu.parts)) for gpu in card.gpus
    )
    return msgspec.structs.replace(card, gpus=gpus)
