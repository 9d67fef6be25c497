"""Parts of benchmarks, as each `__main__` names them in PARTS: what a part measures, what it needs, and the options of
its smallest form, which takes a moment.

The smallest form shows that the part runs. Its figures mean nothing.
"""

import importlib.util
import shutil
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct


class Need(Struct, frozen=True):
    """A package, a program or a device. `missing` says why it is not there, and is empty where it is there."""

    name: str
    missing: Callable[[], str]
    only_some: bool = False
    """Whether without it the part leaves out some of its measures and does the others."""
    unless: str = ""
    """An option with which the part does without it."""


class Part(Struct, frozen=True, kw_only=True):
    about: str
    needs: tuple[Need, ...] = ()
    smallest: tuple[str, ...] = ()
    """Options of the smallest form."""
    usual: bool = True
    """Whether it runs when no part is named."""

    def missing(self, given: Collection[str] = ()) -> str:
        """Why the part cannot run when these options are given; empty where it can."""
        strict = [need for need in self.needs if not need.only_some and need.unless not in given]
        return "; ".join(filter(None, (need.missing() for need in strict)))


Parts = Mapping[str, Part]


def package(name: str, extra: str, *, only_some: bool = False) -> Need:
    """A Python package of this extra of the project."""
    there = importlib.util.find_spec(name) is not None
    return Need(name, lambda: "" if there else f"{name} is not installed: pip install '.[{extra}]'", only_some)


def program(name: str, debian: str, *, only_some: bool = False) -> Need:
    """A program of this Debian package."""

    def missing() -> str:
        return "" if shutil.which(name) else f"{name} is not on PATH: apt-get install {debian}"

    return Need(name, missing, only_some)


COMPILER = program("cc", "gcc")
