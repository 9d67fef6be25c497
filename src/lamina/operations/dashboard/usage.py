"""What containers use of their shares, by the metrics of agents, and its place in the document."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from lamina.errors import Outside
from lamina.model.quantities import MIB
from lamina.operations.dashboard.document import ClusterDocument, GpuPart, NodeCard, PodCard, ShareRow

_PREFIX = "lamina_container_"
_BUSY = f"{_PREFIX}utilization_percent"
_AMOUNTS = {
    f"{_PREFIX}memory_used_bytes": "used_mib",
    f"{_PREFIX}memory_peak_bytes": "peak_mib",
    f"{_PREFIX}memory_spilled_bytes": "spilled_mib",
    f"{_PREFIX}memory_limit_bytes": "limit_mib",
}


class ContainerOnGpu(NamedTuple):
    """Whose use it is. `gpu` is the UUID that the container sees, a MIG device's if it has one."""

    namespace: str
    pod: str
    container: str
    gpu: str


class ShareUse(NamedTuple):
    """MiB, and percent of the GPU's time over the last seconds; None where it is not known."""

    used_mib: int | None = None
    peak_mib: int | None = None
    busy_percent: int | None = None
    spilled_mib: int | None = None
    limit_mib: int | None = None


Usage = Mapping[ContainerOnGpu, ShareUse]


def usage_in(page: str) -> dict[ContainerOnGpu, ShareUse]:
    """What a page of metrics says, an agent's or one of Prometheus. Raises Outside where it is no such page."""
    sums: dict[ContainerOnGpu, dict[str, float]] = {}
    text = "\n".join(line for line in page.split("\n") if line.startswith(_PREFIX))
    try:
        for family in text_string_to_metric_families(f"{text}\n"):
            for sample in family.samples:
                if sample.name == _BUSY or sample.name in _AMOUNTS:
                    labels = sample.labels
                    holder = ContainerOnGpu(*(labels.get(field, "") for field in ContainerOnGpu._fields))
                    figures = sums.setdefault(holder, {})
                    figures[sample.name] = figures.get(sample.name, 0.0) + sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise Outside(f"it is not a page of metrics: {error}") from error
    return {holder: _use(figures) for holder, figures in sums.items()}


def _use(figures: Mapping[str, float]) -> ShareUse:
    amounts = {field: round(figures[name] / MIB) for name, field in _AMOUNTS.items() if name in figures}
    return ShareUse(**amounts, busy_percent=round(figures[_BUSY]) if _BUSY in figures else None)


def with_usage(document: ClusterDocument, usage: Usage) -> ClusterDocument:
    """The document with what is known of the use of each share."""
    if not usage:
        return document
    by_container: dict[tuple[str, str, str], list[ContainerOnGpu]] = {}
    for holder in usage:
        by_container.setdefault(holder[:3], []).append(holder)
    pods = {uid: _pod(card, usage, by_container) for uid, card in document.pods.items()}
    used = {(uid, row.gpu): amount for uid, card in pods.items() for row, amount in _used(card)}
    nodes = {name: _node(card, used) for name, card in document.nodes.items()}
    return msgspec.structs.replace(document, pods=pods, nodes=nodes)


def _pod(card: PodCard, usage: Usage, by_container: Mapping[tuple[str, str, str], list[ContainerOnGpu]]) -> PodCard:
    """A MIG device has a UUID of its own, so a container's only share is found by its container."""
    rows = []
    for row in card.shares:
        holders = by_container.get((card.namespace, card.name, row.container), [])
        only = len(holders) == 1 and sum(each.container == row.container for each in card.shares) == 1
        found = holders if only else [holder for holder in holders if holder.gpu == row.gpu]
        rows.append(_row(row, usage[found[0]]) if found else row)
    return msgspec.structs.replace(card, shares=tuple(rows)) if rows else card


def _row(row: ShareRow, use: ShareUse) -> ShareRow:
    return msgspec.structs.replace(row, **use._asdict())


def _used(card: PodCard) -> Iterator[tuple[ShareRow, int]]:
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
