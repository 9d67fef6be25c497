"""The rows of the screen: what a filter chooses of them, and their order. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from lamina.errors import BadInput
from lamina.report.gpus import HEALTHY, GpuRow
from lamina.report.pods import UnplacedPod
from lamina.report.shares import PodShare

R = TypeVar("R")
FIELDS = ("node", "namespace", "pod", "container", "model", "status")


class PodLine(NamedTuple):
    """A share, or a pod that waits for one. Memory is in MiB; None is what is not known."""

    namespace: str
    pod: str
    status: str
    container: str = ""
    node: str = ""
    gpu_index: int | None = None
    gpu: str = ""
    model: str = ""
    mode: str = ""
    compute: str = ""
    memory_mib: int | None = None
    limit_mib: int | None = None
    used_mib: int | None = None
    peak_mib: int | None = None
    busy_percent: float | None = None
    refusals: int | None = None

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return not self.gpu


class Word(NamedTuple):
    """What a filter looks for: part of one field, or with an empty name, of any."""

    field: str
    part: str


class Order(NamedTuple):
    """What rows are sorted by. `down` if the largest comes first."""

    of_pod: Callable[[PodLine], Any]
    of_gpu: Callable[[GpuRow], Any]
    down: bool = True


def pod_line(row: PodShare | UnplacedPod) -> PodLine:
    """The line of a share or of a pod without one."""
    if isinstance(row, UnplacedPod):
        return PodLine(row.namespace, row.pod, row.status)
    share = row.share
    return PodLine(
        row.namespace,
        row.pod,
        row.status,
        share.container,
        row.node,
        share.index,
        share.gpu,
        short_model(row.model),
        f"{share.mode} {share.mig}".rstrip(),
        share.compute,
        share.memory_mib,
        share.limit_mib,
        share.used_mib,
        share.peak_mib,
        row.busy_percent,
        row.refusals,
    )


def part(value: float | None, whole: float | None) -> float | None:
    """None where either is not known, or the whole is nothing."""
    return None if value is None or not whole else value / whole


def short_model(model: str) -> str:
    """The model without the name of the vendor, which all have."""
    return model.removeprefix("NVIDIA ")


def state_of(row: GpuRow) -> str:
    """Its health, and whether it is cordoned, which counts while it is healthy."""
    return "cordoned" if row.cordoned and row.health == HEALTHY else row.health


_ORDERS: dict[str, Order] = {
    "used": Order(lambda row: row.used_mib, lambda row: row.memory_used_mib),
    "busy": Order(lambda row: row.busy_percent, lambda row: row.busy_percent),
    "full": Order(lambda row: part(row.used_mib, row.limit_mib), lambda row: part(row.memory_used_mib, row.memory_mib)),
    "limit": Order(lambda row: row.limit_mib, lambda row: row.memory_mib),
    "refused": Order(lambda row: row.refusals, lambda row: 0),
    "pod": Order(lambda row: (row.namespace, row.pod), lambda row: -len(row.pods), False),
    "node": Order(
        lambda row: (row.node, row.gpu_index or 0) if row.node else None, lambda row: (row.node, row.index), False
    ),
    "status": Order(lambda row: row.status, state_of, False),
}
ORDERS = tuple(_ORDERS)


def parse_filter(text: str) -> tuple[Word, ...]:
    """What rows have to contain: `node=n1 web` is part of a node, and of any field. Raises BadInput."""
    return tuple(map(_word, text.split()))


def _word(text: str) -> Word:
    field, equals, part = text.partition("=")
    if not equals:
        return Word("", text.lower())
    if field not in FIELDS:
        raise BadInput(f"a filter is one of {', '.join(FIELDS)} and =, or part of any of them, got {text!r}")
    return Word(field, part.lower())


def chosen_pods(rows: Iterable[PodLine], words: Sequence[Word]) -> list[PodLine]:
    """The rows that contain all words."""
    return [row for row in rows if _contains(_texts_of_pod(row), words)]


def chosen_gpus(rows: Iterable[GpuRow], words: Sequence[Word]) -> list[GpuRow]:
    """The same of GPUs. One is shown for a pod or namespace if one of its pods is."""
    return [row for row in rows if _contains(_texts_of_gpu(row), words)]


def pods_in_order(rows: Iterable[PodLine], order: str, *, reverse: bool) -> list[PodLine]:
    """The rows by one of `ORDERS`. Equal ones are by name; what is not known comes last, in either direction."""
    by_name = sorted(rows, key=lambda row: (row.namespace, row.pod, row.container, row.gpu))
    return _in_order(by_name, _ORDERS[order].of_pod, _ORDERS[order].down != reverse)


def gpus_in_order(rows: Iterable[GpuRow], order: str, *, reverse: bool) -> list[GpuRow]:
    """The same of GPUs; equal ones are by node and index."""
    by_name = sorted(rows, key=lambda row: (row.node, row.index))
    return _in_order(by_name, _ORDERS[order].of_gpu, _ORDERS[order].down != reverse)


def falls(order: str, *, reverse: bool) -> bool:
    """Whether the largest comes first."""
    return _ORDERS[order].down != reverse


def _in_order(rows: Sequence[R], key: Callable[[R], Any], down: bool) -> list[R]:
    known = sorted((row for row in rows if key(row) is not None), key=key, reverse=down)
    return [*known, *(row for row in rows if key(row) is None)]


def _contains(texts: Mapping[str, str], words: Sequence[Word]) -> bool:
    return all(any(part in text for text in _of_field(texts, field)) for field, part in words)


def _of_field(texts: Mapping[str, str], field: str) -> Iterator[str]:
    yield from (text.lower() for name, text in texts.items() if field in ("", name))


def _texts_of_pod(row: PodLine) -> Mapping[str, str]:
    return {
        "node": row.node,
        "namespace": row.namespace,
        "pod": row.pod,
        "container": row.container,
        "model": row.model,
        "status": row.status,
    }


def _texts_of_gpu(row: GpuRow) -> Mapping[str, str]:
    """The names of pods are lines, so that no part goes over two of them."""
    names = [name.rpartition("/") for name in row.pods]
    return {
        "node": row.node,
        "namespace": "\n".join(namespace for namespace, _, _ in names),
        "pod": "\n".join(pod for _, _, pod in names),
        "model": row.model,
        "status": state_of(row),
    }
