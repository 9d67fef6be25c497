"""The commands of nvidia-smi that begin with a word of their own and have options of their own: dmon, pmon, topo."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lamina_lab.smi import monitor, topo
from lamina_lab.smi.machine import SmiGpu
from lamina_lab.smi.monitor import MonitorOptions

WORDS = (*monitor.GROUPS, "topo")


class InvalidOption(Exception):
    """An invalid option; the message is for the user."""


@dataclass(frozen=True)
class Command:
    """What is asked for, of which GPUs (all, if empty)."""

    word: str
    monitor: MonitorOptions
    ids: tuple[str, ...] = ()


def parse(word: str, arguments: Sequence[str]) -> Command:
    """Raises InvalidOption."""
    rest, values = iter(arguments), {}
    for argument in rest:
        name, separator, value = argument.partition("=")
        name = _NAMES.get(name, name)
        if word == "topo" and name == "-m":
            values[name] = ""
        elif word != "topo" and name in ("-i", "-s", "-c", "-d"):
            values[name] = value if separator else next(rest, "")
        else:
            raise InvalidOption(f"Invalid combination of input arguments: {argument!r} is not an option of {word}.")
    if word == "topo":
        if not values:
            raise InvalidOption("topo needs -m.")
        return Command(word, MonitorOptions(""))
    groups = values.get("-s", monitor.DEFAULTS[word])
    if not groups or set(groups) - set(monitor.GROUPS[word]):
        raise InvalidOption(f"-s has letters of {''.join(monitor.GROUPS[word])}.")
    options = MonitorOptions(groups, _number(values, "-c", 0), _number(values, "-d", 1))
    return Command(word, options, tuple(part.strip() for part in values.get("-i", "").split(",") if part))


_NAMES = {"--matrix": "-m", "--id": "-i", "--select": "-s", "--count": "-c", "--delay": "-d"}


def _number(values: dict[str, str], name: str, otherwise: int) -> int:
    text = values.get(name, str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise InvalidOption(f"{name} is a number, not {text!r}.")
    return int(text)


def blocks(command: Command, read: Callable[[], Sequence[SmiGpu]]) -> Iterator[list[str]]:
    """Lines to print, block by block. `read` gives the GPUs as they are now."""
    if command.word == "topo":
        yield topo.matrix_lines(read())
        return
    yield from monitor.rounds(command.word, read, command.monitor, time.sleep)
