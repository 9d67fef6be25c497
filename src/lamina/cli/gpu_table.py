"""The table of GPUs."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from lamina.report.gpus import HEALTHY, GpuRow

UNKNOWN = "-"
_HEAD = ("NODE", "GPU", "MODEL", "MODE", "GRANTED", "USED", "FREE", "COMPUTE", "BUSY", "SLOTS", "STATE", "PODS")
_LENT = ("LIMIT", "BORROWED")
_MORE = ("FREE COMPUTE", "FREE SLOTS", "UUID")


def gpu_table(rows: Sequence[GpuRow], *, wide: bool) -> Table:
    """GRANTED, USED and FREE are memory, and so are LIMIT and BORROWED, which are there where memory is lent. A wide
    table has the names of pods and the UUIDs too."""
    lending = any(_lends(row) for row in rows)
    head = (*_HEAD[:-1], *(_LENT if lending else ()), *(_MORE if wide else ()), _HEAD[-1])
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        cells = [*_cells(row), *(_lent(row) if lending else ())]
        if wide:
            table.add_row(*cells, *_more(row), "\n".join(row.pods) or UNKNOWN)
        else:
            table.add_row(*cells, str(len(row.pods)))
    return table


def _lends(row: GpuRow) -> bool:
    return row.memory_limit_mib != row.memory_granted_mib


def amount(value: float | None, unit: str) -> str:
    """A number with its unit, or `-`."""
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def _cells(row: GpuRow) -> Iterator[str]:
    yield row.node
    yield str(row.index)
    yield row.model
    yield row.mode
    yield _part(row.memory_granted_mib, row.memory_mib, "MiB")
    yield amount(row.memory_used_mib, "MiB")
    yield amount(row.memory_free_mib, "MiB")
    yield _part(row.compute_granted_percent, row.compute_percent, "%")
    yield amount(row.busy_percent, "%")
    yield UNKNOWN if row.slots_granted is None else f"{row.slots_granted} of {row.slots}"
    yield ", ".join(filter(None, (row.health if row.health != HEALTHY or not row.cordoned else "", _cordon(row))))


def _lent(row: GpuRow) -> Iterator[str]:
    yield amount(row.memory_limit_mib, "MiB")
    yield amount(row.memory_borrowed_mib, "MiB")


def _more(row: GpuRow) -> Iterator[str]:
    yield amount(row.compute_free_percent, "%")
    yield UNKNOWN if row.slots_free is None else str(row.slots_free)
    yield row.gpu


def _part(granted: int | None, capacity: int, unit: str) -> str:
    return f"{UNKNOWN if granted is None else granted} of {capacity} {unit}"


def _cordon(row: GpuRow) -> str:
    return "cordoned" if row.cordoned else ""
