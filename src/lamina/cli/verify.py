"""`lamina verify`: whether limits hold on this machine."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from rich.table import Table

    from lamina.verify.rows import Row


def verify(
    gpu: Annotated[str, typer.Option("--gpu", help="Which GPU, by index or UUID.")] = "0",
    simulate: Annotated[
        str, typer.Option("--simulate", help="Use a simulated GPU of this model instead of the driver's.")
    ] = "",
    memory: Annotated[str, typer.Option("--memory", help="The memory limit to try, such as 2048Mi.")] = "2048Mi",
    shares: Annotated[
        str, typer.Option("--shares", help="Shares of the GPU's time to try, in percent.")
    ] = "10,30,50,70",
    seconds: Annotated[float, typer.Option("--seconds", help="How long each share is measured.")] = 4.0,
    quick: Annotated[bool, typer.Option("--quick", help="Shares 30 and 70 only, for two seconds each.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")] = None,
) -> None:
    """Try on this machine whether memory, compute, views and overhead are as they should be."""
    from lamina.cli.terminal import console, print_table
    from lamina.model.quantities import parse_memory_mib
    from lamina.verify.run import verify

    if file is not None:
        _write(file, "[]\n")  # a wrong place is told now and not after a minute
    asked = ("30,70", 2.0) if quick else (shares, seconds)
    rows = verify(
        gpu=gpu,
        simulate=simulate or None,
        memory_mib=parse_memory_mib(memory, where="--memory"),
        shares=_shares(asked[0]),
        seconds=asked[1],
        rounds=5 if quick else 15,
    )
    known: list[Row] = []
    with console.status("starting") as status:
        for row in rows:
            known.append(row)
            status.update(f"{row.check}: {row.what}")
    if file is not None:
        written = [{**msgspec.to_builtins(row), "error": row.error} for row in known]
        _write(file, json.dumps(written, indent=1) + "\n")
    print_table(console, _table(known))
    failed = sum(row.verdict == "FAILED" for row in known)
    skipped = sum(row.verdict == "not tested" for row in known)
    console.print(f"{len(known)} checks: {failed} failed, {skipped} not tested")
    sys.exit(1 if failed else 0)


def _write(file: Path, text: str) -> None:
    from lamina.errors import BadInput

    try:
        file.write_text(text)
    except OSError as error:
        raise BadInput(f"--json {file} cannot be written: {error.strerror}") from error


def _shares(text: str) -> tuple[int, ...]:
    from lamina.errors import BadInput

    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise BadInput(f"--shares {text!r}: write whole numbers with commas between, such as 10,50")
    return tuple(map(int, words))


def _table(rows: "list[Row]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("CHECK", "WHAT"):
        table.add_column(column)
    for column in ("LIMIT", "MEASURED", "ERROR"):
        table.add_column(column, justify="right")
    for column in ("UNIT", "VERDICT", "NOTE"):
        table.add_column(column)
    for row in rows:
        error = "" if row.error is None else f"{row.error:+,.{_digits(row)}f}"
        table.add_row(
            row.check,
            row.what,
            _number(row, row.limit),
            _number(row, row.measured),
            error,
            row.unit,
            row.verdict,
            row.note,
        )
    return table


def _digits(row: "Row") -> int:
    return 1 if row.unit in ("%", "ns") else 0


def _number(row: "Row", value: float | None) -> str:
    return "" if value is None else f"{value:,.{_digits(row)}f}"
