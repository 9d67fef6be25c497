"""`lamina ps`: the runs of this machine, what they may hold and what they hold."""

import asyncio
from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from lamina.cli.lists import ListForm, ListKind, ListReading, list_from
from lamina.cli.options import NoHeaders, Output, SortBy, Watch
from lamina.cli.printable import printable
from lamina.cli.screen.text import ASCII, shortened
from lamina.cli.tables import UNKNOWN, amount
from lamina.operations.local_machine import read_machine
from lamina.report.local_runs import RunRow

_MAX_COMMAND = 48
_HEAD = ("RUN", "USER", "PID", "STATUS", "GPU", "LIMIT", "USED", "PEAK", "REFUSED", "COMPUTE")
_MORE = ("MODEL", "UUID", "PROCESSES")


def ps(output: Output = "table", sort_by: SortBy = "", no_headers: NoHeaders = False, watch: Watch = False) -> None:
    """List runs of `lamina run` on this machine: limit, use, peak, refused allocations and processes.

    Runs of other users are shown as far as file permissions allow.
    """
    kind = ListKind(
        row=RunRow,
        table=lambda rows, wide: _table(rows, wide=wide),
        name=lambda row: row.run,
        title=lambda row: f"run {row.run}",
        empty="No `lamina run` runs on this machine.",
        notes=lambda rows: (f"{row.run}: {row.reason}" for row in rows if row.reason),
    )
    form = ListForm(output, sort_by, not no_headers, watch)
    list_from(kind, form, lambda listed: asyncio.run(listed(_read)))


async def _read() -> ListReading[RunRow]:
    machine = await asyncio.to_thread(read_machine, gpus=False)
    return ListReading(machine.run_rows, warnings=machine.warnings)


def _table(rows: Sequence[RunRow], *, wide: bool) -> Table:
    table = Table(*_HEAD, *(_MORE if wide else ()), "COMMAND", box=None, pad_edge=False)
    for row in rows:
        cells = [*_cells(row), *(_more(row) if wide else ())]
        command = _command(row) if wide else shortened(_command(row), _MAX_COMMAND, ASCII.cut)
        table.add_row(*map(escape, (*cells, command)))
    return table


def _cells(row: RunRow) -> Iterator[str]:
    yield row.run
    yield row.user
    yield UNKNOWN if row.pid is None else str(row.pid)
    yield row.status
    yield UNKNOWN if row.index is None else str(row.index)
    yield amount(row.memory_mib, "MiB")
    yield amount(row.used_mib, "MiB")
    yield amount(row.peak_mib, "MiB")
    yield UNKNOWN if row.refusals is None else str(row.refusals)
    yield row.compute


def _more(row: RunRow) -> Iterator[str]:
    yield row.model or UNKNOWN
    yield row.gpu or UNKNOWN
    yield ", ".join(f"{each.name} {each.pid} ({each.used_mib} MiB)" for each in row.processes) or UNKNOWN


def _command(row: RunRow) -> str:
    """The command, or the device of the containers that it starts and that are limited in its place."""
    device = f"{row.device}: " if row.device else ""
    return printable(f"{device}{row.command}") or UNKNOWN
