"""A program is plain data: operations in the order in which they happen, each in one thread of one process.

Operations refer to each other by number, so that one can be left out; what refers to it gets zero then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

FIRST_PROCESSES, MOST_PROCESSES, THREADS, MOST = 2, 6, 3, 96


@dataclass(frozen=True)
class Word:
    """A word that an operation wrote to one of its places, and how much is added to it."""

    operation: int
    place: int = 0
    word: int = 0
    more: int = 0


@dataclass(frozen=True)
class PlaceOf:
    """The address of a place of an operation."""

    operation: int
    place: int = 0


@dataclass(frozen=True)
class Place:
    """A place to write to. The first words are there before."""

    before: tuple["Argument", ...] = ()


@dataclass(frozen=True)
class Structure:
    """Words in memory."""

    words: tuple["Argument", ...]


@dataclass(frozen=True)
class HostFunction:
    """It notes what it gets, which is `Own`. One for a stream has other parameters."""

    of_stream: bool = False


@dataclass(frozen=True)
class Own:
    """The number of the operation itself."""


Argument = int | str | Word | PlaceOf | Place | Structure | HostFunction | Own


@dataclass(frozen=True)
class Operation:
    """`what` is `call` or another word of native/tests/replay/operations.c."""

    number: int
    what: str
    name: str = ""
    arguments: tuple[Argument, ...] = ()
    process: int = 0
    thread: int = 0

    def __str__(self) -> str:
        return f"{self.number} in {self.process}.{self.thread}: {' '.join(_line(self, {}))}"


Program = Sequence[Operation]


def _render(argument: Argument, own: int, places: dict[int, int] | None) -> str:
    def at(operation: int) -> int:
        return operation if places is None else places.get(operation, MOST - 1)

    match argument:
        case int():
            return str(argument % (1 << 64))
        case str():
            return f"@{argument}"
        case Word(operation, place, word, more):
            return f"${at(operation)}.{place}.{word}+{more}"
        case PlaceOf(operation, place):
            return f"^{at(operation)}.{place}"
        case Place(before):
            return " ".join(["[", *(_render(each, own, places) for each in before), "]"])
        case Structure(words):
            return " ".join(["(", *(_render(each, own, places) for each in words), ")"])
        case HostFunction(of_stream):
            return "%" if of_stream else "&"
        case Own():
            return str(at(own))


def _line(operation: Operation, places: dict[int, int]) -> list[str]:
    rendered = [_render(each, operation.number, places or None) for each in operation.arguments]
    if operation.what != "call":
        rendered = [text.removeprefix("@") for text in rendered]
    return [operation.what, *([operation.name] if operation.name else []), *rendered]


def text_of(program: Program) -> str:
    """As the replaying program reads it. Its operations get new numbers."""
    places = {each.number: at for at, each in enumerate(program)}
    lines = [f"{each.process} {each.thread} {' '.join(_line(each, places))}" for each in program]
    return "\n".join(lines) + "\n"
