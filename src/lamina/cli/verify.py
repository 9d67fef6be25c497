"""`lamina verify`: whether limits hold on this machine."""

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import LocalGpuOption, Simulate
from lamina.cli.terminal import console, print_charts, print_table
from lamina.core.quantities import parse_gpu_memory
from lamina.errors import BadInput
from lamina.operations.verify import run as checks
from lamina.operations.verify.report import HEAD, CheckResult, cells, charts, page
from lamina.ports.user_files import check_writable, write


def verify(
    gpu: LocalGpuOption = "",
    simulate: Simulate = "",
    memory: Annotated[str, typer.Option("--memory", help="Memory limit to test, such as 2048Mi or 25%.")] = "2048Mi",
    shares: Annotated[str, typer.Option("--shares", help="Compute limits to test, in percent.")] = "10,30,50,70",
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds to measure each compute limit.")] = 4.0,
    quick: Annotated[bool, typer.Option("--quick", help="Only test 30 and 70 percent, for two seconds each.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the results as JSON to this file.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the results with charts to this file, as one HTML page.")
    ] = None,
) -> None:
    """Test on this machine that memory and compute limits hold, and what the facade costs."""
    for path, option in ((file, "--json"), (html, "--html")):
        if path is not None:
            check_writable(path, option)  # report an unwritable path before the measurement, not after it
    measured = ("30,70", 2.0) if quick else (shares, seconds)
    rows = checks.verify(
        gpu=gpu,
        simulate=simulate or None,
        memory=parse_gpu_memory(memory, where="--memory"),
        shares=_shares(measured[0]),
        seconds=measured[1],
        rounds=5 if quick else 15,
    )
    known: list[CheckResult] = []
    with console.status("starting") as status:
        for row in rows:
            known.append(row)
            status.update(f"{row.check}: {row.what}")
    if file is not None:
        written = [{**msgspec.to_builtins(row), "error": row.error} for row in known]
        write(file, f"{json.dumps(written, indent=1)}\n".encode(), "--json")
    if html is not None:
        write(html, _page(known), "--html")
    print_table(console, _table(known))
    print_charts(console, charts(known))
    failed = sum(row.verdict == "FAILED" for row in known)
    skipped = sum(row.verdict == "not tested" for row in known)
    console.print(f"{len(known)} checks: {failed} failed, {skipped} not tested")
    raise typer.Exit(ExitCode.NO if failed else ExitCode.DONE)


def _shares(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise BadInput(f"--shares must be integers separated by commas, such as 10,50, got {text!r}")
    return tuple(map(int, words))


def _page(rows: list[CheckResult]) -> bytes:
    """The page, with the version of Lamina, the kernel and the time."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return page(rows, {"time": when, "Lamina": version("lamina"), "system": platform.platform()})


def _table(rows: list[CheckResult]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in HEAD:
        table.add_column(column.upper(), justify="right" if column in ("limit", "measured", "error") else "left")
    for row in rows:
        table.add_row(*cells(row))
    return table
