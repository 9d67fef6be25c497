"""How a benchmark begins and ends: with the parts that are named and can run here, and with the exit code of its
measures, or in one sentence at Ctrl-C."""

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from bench.parts import Parts
from lamina.cli.exit_codes import ExitCode

CANNOT_RUN = 2
"""The exit code where an option is wrong, or where something that is needed is not there."""


def add_parts(parser: argparse.ArgumentParser, parts: Parts) -> None:
    """The names of parts as arguments."""
    usual = ", ".join(name for name, part in parts.items() if part.usual)
    every = f"{', '.join(parts)} (default {'all' if all(part.usual for part in parts.values()) else usual})"
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to run: {every}")


def named(parser: argparse.ArgumentParser, parts: Parts, options: argparse.Namespace) -> list[str]:
    """The parts that are asked for. Ends the program with CANNOT_RUN where there is no such part."""
    if unknown := [name for name in options.parts if name not in parts]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(parts)}")
    return list(options.parts or (name for name, part in parts.items() if part.usual))


def chosen(parser: argparse.ArgumentParser, parts: Parts, options: argparse.Namespace) -> list[str]:
    """The parts that are asked for and can run here.

    Ends the program with CANNOT_RUN where one that was named cannot, or none can. Others are left out in one sentence.
    """
    given = {name for name, value in vars(options).items() if value != parser.get_default(name)}
    wanted = named(parser, parts, options)
    missing = {name: reason for name in wanted if (reason := parts[name].missing(given))}
    for name, reason in missing.items():
        print(f"{parser.prog} cannot run {name}: {reason}", file=sys.stderr)
    left = [name for name in wanted if name not in missing]
    if not left or (missing and options.parts):
        sys.exit(CANNOT_RUN)
    return left


def end_with(main: Callable[[], int]) -> NoReturn:
    """Run a benchmark to its end. What it started ends with the contexts that it has opened."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("the benchmark was interrupted before it was done; nothing was written", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
