"""`python -m bench.gpu`: tries all rows on the GPU and on simgpu, and writes JSON and a page.

Exit codes: 0, nothing failed; 1, a bound is broken or a row has no answer; 2, there is no GPU or an option is wrong.
Differences between the card and the simulated driver are listed and do not change the exit code.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.gpu import verified
from bench.gpu.client_rows import CLIENT_ROWS
from bench.gpu.comparison import Result, results, without_computed, without_starved
from bench.gpu.mps_rows import MPS_ROWS
from bench.gpu.network_rows import NETWORK_ROWS
from bench.gpu.page import page, summary, text
from bench.gpu.rows import ROWS as DRIVER_ROWS
from bench.gpu.rows import Row, Value
from bench.gpu.sides import Deadline, Facts, Side, side
from bench.parts import Need, Part
from bench.program import add_parts, end_with, named
from lamina.core.cards import card
from lamina.enforcement.driver import find_driver
from lamina.errors import BadInput, LaminaError, Outside
from lamina_lab.simgpu.drivers import FIRST_DRIVERS

MINUTES = 7.5


def no_driver() -> str:
    """Why this machine has no GPU; empty where it has a driver."""
    try:
        find_driver()
    except LaminaError as error:
        return str(error)
    return ""


_GPU = Need("an NVIDIA GPU", no_driver, unless="simulate")
_QUICK = ("--simulate", "T4", "--first", "1")
PARTS = {
    "answers": Part(about="what the driver says and how it counts memory", needs=(_GPU,), smallest=_QUICK),
    "verify": Part(about="`lamina verify`", needs=(_GPU,), smallest=_QUICK),
    "clients": Part(
        about="packages of others under limits, each where it is installed", needs=(_GPU,), smallest=_QUICK
    ),
    "compute": Part(about="shares of the GPU's time", needs=(_GPU,), smallest=_QUICK),
    "cost": Part(about="what a call costs more with the facade", needs=(_GPU,), smallest=_QUICK),
    "mps": Part(about="clients of MPS", needs=(_GPU,), smallest=_QUICK),
    "networks": Part(about="training and inference of known networks", needs=(_GPU,), smallest=_QUICK, usual=False),
}
"""In the order in which they run: if time is short, the last ones are left out."""
ROWS = (*DRIVER_ROWS, *CLIENT_ROWS, *MPS_ROWS, *NETWORK_ROWS)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The options. Ends the program with 2 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    add_parts(parser, PARTS)
    parser.add_argument("--gpu", default="0", help="the GPU, by index or UUID (default 0)")
    parser.add_argument("--simulate", metavar="MODEL", help="use a simulated GPU in place of the card")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"when to stop (default {MINUTES})")
    parser.add_argument("--first", type=int, help="only so many rows of each part")
    parser.add_argument("--out", type=Path, default=Path("gpu-test"), help="prefix of the files (default gpu-test)")
    options = parser.parse_args(words)
    options.parts = named(parser, PARTS, options)
    if not 0 < options.minutes <= 60:
        parser.error(f"--minutes must be over 0 and at most 60, got {options.minutes:g}")
    return options


def counterpart(about: Facts, name: str) -> str:
    """The simulated GPU to compare a card with: its model and CUDA version. Raises BadInput for an unknown card."""
    wanted = [int(number) for number in str(about["CUDA"]).split(".")]
    known = [version for version in FIRST_DRIVERS if [int(number) for number in version.split(".")] <= wanted]
    return f"{card(name).key}@{(known or list(FIRST_DRIVERS))[-1]}"


def attempt(one: Side | str, row: Row) -> Facts | str:
    """The facts of a row, or why there are none. Nothing that a row does ends the test."""
    if isinstance(one, str):
        return one
    try:
        return one.ask(row)
    except LaminaError as failed:
        return str(failed)
    except Exception as failed:  # a probe's answer may be anything
        return f"{type(failed).__name__}: {failed}"


def attempt_verify(gpu: str, simulate: str | None, deadline: Deadline) -> verified.Checks | str:
    """The same for `lamina verify`."""
    try:
        return verified.checks(gpu, simulate, deadline)
    except LaminaError as failed:
        return str(failed)


def tried(
    options: argparse.Namespace, real: Side, other: Side | str, model: str, deadline: Deadline
) -> Iterator[Result]:
    """Results as they become known."""
    known: list[Result] = []
    for part in options.parts:
        if part == verified.PART:
            on_card = attempt_verify(options.gpu, options.simulate, deadline)
            yield from verified.verify_results(on_card, attempt_verify("0", model, deadline) if model else None)
            continue
        for row in [row for row in ROWS if row.part == part][: options.first]:
            compared = any(row.fact(fact.name).within is not None for fact in row.facts) or not row.facts
            found = results(row, attempt(real, row), attempt(other, row) if compared else None)
            if options.simulate is not None:
                found = without_computed(row, found)
            known.extend(found)
            yield from without_starved(row, found, known)


def run(options: argparse.Namespace) -> tuple[dict[str, Value], list[Result]]:
    """All rows. Raises LaminaError when there is no GPU to try them on."""
    began = time.monotonic()
    deadline = Deadline(options.minutes * 60)
    with ExitStack() as stack:
        real = stack.enter_context(side(options.gpu, options.simulate, deadline))
        gpu = real.place.gpu
        about = {"GPU": gpu.name, "UUID": gpu.uuid, "memory, MiB": gpu.memory_mib, **real.about}
        about["simulated"] = options.simulate is not None
        try:
            model = counterpart(real.about, gpu.name)
            other: Side | str = stack.enter_context(side("0", model, deadline))
        except LaminaError as unknown:
            model, other = "", f"there is nothing to compare with: {unknown}"
        about["compared with"] = model or str(other)
        found = []
        for result in tried(options, real, other, model, deadline):
            found.append(result)
            print(line(result), flush=True)
    about["seconds"] = round(time.monotonic() - began)
    return about, found


def line(result: Result) -> str:
    """A result for the terminal."""
    differs = f"  simulated: {text(result.simulated)}" if result.is_finding else ""
    words = (result.verdict, f"{result.row}: {result.fact}".rstrip(": "), text(result.card), result.unit)
    return f"{words[0]:<10}  {words[1]}  {words[2]} {words[3]}{differs}  {result.note}".rstrip()


def main(words: Sequence[str]) -> int:
    """The exit code."""
    options = arguments(words)
    files = [options.out.with_name(f"{options.out.name}.{suffix}") for suffix in ("json", "html")]
    try:
        for file in files:
            file.touch()
    except OSError as error:
        print(f"cannot write --out {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    try:
        about, found = run(options)
    except (BadInput, Outside) as failed:
        for file in files:
            file.unlink(missing_ok=True)
        print(failed, file=sys.stderr)
        return 2
    written = {"about": about, "results": [msgspec.to_builtins(result) for result in found]}
    files[0].write_text(json.dumps(written, indent=1) + "\n")
    files[1].write_text(page(about, found))
    print(summary(found))
    print(f"wrote {files[0]} and {files[1]}")
    return 1 if any(result.has_failed for result in found) else 0


if __name__ == "__main__":
    end_with(lambda: main(sys.argv[1:]))
