"""The columns of both tables of the screen."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from lamina.cli.screen.rows import PodLine, part, short_model, state_of
from lamina.cli.tables import UNKNOWN
from lamina.report.gpus import HEALTHY, GpuRow
from lamina.report.shares import CREATING

R = TypeVar("R")
_ALMOST_FULL, _FULL = 0.75, 0.9


class Filled(NamedTuple):
    """What a bar shows, in parts of one."""

    used: float | None
    granted: float | None = None
    style: str = "cyan"


class ScreenColumn(NamedTuple, Generic[R]):
    """A column. The one with the greatest `spare` goes first where there is no room; 0 always stays.

    Texts may be shortened to `least` columns, numbers may not. `order` is what rows are sorted by under its title.
    """

    title: str
    cell: Callable[[R], str]
    spare: int = 0
    number: bool = False
    order: str = ""
    least: int = 8
    style: Callable[[R], str] = lambda row: ""
    bar: Callable[[R], Filled] | None = None
    twin: str = ""
    """The title of a column that says the same, next to which this one is left out."""


def number(value: float | None) -> str:
    """The number without a fraction, or `-`."""
    return UNKNOWN if value is None else f"{value:.0f}"


def percent(value: float | None) -> str:
    """A part of one as a percentage."""
    return UNKNOWN if value is None else f"{value:.0%}"


def load_style(value: float | None) -> str:
    """How full something is, as a color."""
    if value is None or value < _ALMOST_FULL:
        return "green"
    return "yellow" if value < _FULL else "red"


def status_style(status: str) -> str:
    """Of a pod."""
    if status in ("Pending", CREATING):
        return "yellow"
    return "red" if status in ("Failed", "Unknown") else ""


def memory_of_pod(row: PodLine) -> Filled:
    """What it uses of its limit."""
    used = part(row.used_mib, row.limit_mib)
    return Filled(used, style=load_style(used))


def memory_of_gpu(row: GpuRow) -> Filled:
    """What is used and granted of its memory."""
    used = part(row.memory_used_mib, row.memory_mib)
    return Filled(used, part(row.memory_granted_mib, row.memory_mib), load_style(used))


def busy_of(row: GpuRow | PodLine) -> Filled:
    """How busy the GPU is, or is with the share."""
    return Filled(part(row.busy_percent, 100))


def gpu_style(row: GpuRow) -> str:
    """Of its state."""
    if row.health != HEALTHY:
        return "bold red"
    return "yellow" if row.cordoned else ""


def _pod_style(row: PodLine) -> str:
    return status_style(row.status)


PODS: tuple[ScreenColumn[PodLine], ...] = (
    ScreenColumn("NAMESPACE", lambda row: row.namespace, 4, least=10),
    ScreenColumn("POD", lambda row: row.pod, order="pod", least=22, style=_pod_style),
    ScreenColumn("CONTAINER", lambda row: row.container, 8),
    ScreenColumn("NODE", lambda row: row.node or UNKNOWN, 2, order="node", least=11),
    ScreenColumn("GPU", lambda row: number(row.gpu_index), 1, True),
    ScreenColumn("MODEL", lambda row: row.model or UNKNOWN, 9),
    ScreenColumn("MEMORY", lambda row: percent(memory_of_pod(row).used), 3, order="full", bar=memory_of_pod),
    ScreenColumn("USED", lambda row: number(row.used_mib), 0, True, "used"),
    ScreenColumn("LIMIT", lambda row: number(row.limit_mib), 0, True, "limit"),
    ScreenColumn("PEAK", lambda row: number(row.peak_mib), 5, True),
    ScreenColumn("BUSY", lambda row: percent(busy_of(row).used), 10, order="busy", bar=busy_of),
    ScreenColumn("BUSY%", lambda row: number(row.busy_percent), 0, True, "busy", twin="BUSY"),
    ScreenColumn("COMPUTE", lambda row: row.compute or UNKNOWN, 6, True),
    ScreenColumn(
        "REFUSED", lambda row: number(row.refusals), 7, True, "refused", style=lambda row: "red" if row.refusals else ""
    ),
    ScreenColumn("STATUS", lambda row: row.status, 7, order="status", style=_pod_style),
)
GPUS: tuple[ScreenColumn[GpuRow], ...] = (
    ScreenColumn("NODE", lambda row: row.node, order="node", least=12),
    ScreenColumn("GPU", lambda row: str(row.index), 0, True),
    ScreenColumn("MODEL", lambda row: short_model(row.model), 4, least=10),
    ScreenColumn("MODE", lambda row: row.mode, 5),
    ScreenColumn("MEMORY", lambda row: percent(memory_of_gpu(row).used), 1, order="full", bar=memory_of_gpu),
    ScreenColumn("USED", lambda row: number(row.memory_used_mib), 0, True, "used"),
    ScreenColumn("GRANTED", lambda row: number(row.memory_granted_mib), 3, True),
    ScreenColumn("TOTAL", lambda row: str(row.memory_mib), 0, True, "limit"),
    ScreenColumn("BUSY", lambda row: percent(busy_of(row).used), 8, order="busy", bar=busy_of),
    ScreenColumn("BUSY%", lambda row: number(row.busy_percent), 0, True, "busy", twin="BUSY"),
    ScreenColumn("COMPUTE", lambda row: row.compute, 7, True),
    ScreenColumn("PODS", lambda row: str(len(row.pods)), 2, True, "pod"),
    ScreenColumn("STATE", state_of, 6, order="status", style=gpu_style),
)
