"""The screen of `lamina top`: what keys change, and its lines. Pure: no terminal and no clock."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lamina.cli.screen_table import ScreenColumn, screen_table, shortened
from lamina.errors import BadInput
from lamina.report.gpus import GpuRow
from lamina.report.shares import PodShare

_HELP = "q quit  g GPUs  p pods  s sort  r reverse  / filter  up, down, page scroll"
_FILTERS = ("node", "namespace", "pod", "model")
_AROUND = 3
"""Lines that are no rows: the title, the warning or the filter, and the keys. The head of the table is one more."""


class ShownReading(NamedTuple):
    """One reading of a cluster."""

    gpus: Sequence[GpuRow] = ()
    shares: Sequence[PodShare] = ()
    at: str = ""
    silent: int = 0
    """Nodes whose agents did not answer."""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


_SHARES: tuple[ScreenColumn[PodShare], ...] = (
    ScreenColumn("NAMESPACE", lambda row: row.namespace, 2),
    ScreenColumn("POD", lambda row: row.pod),
    ScreenColumn("CONTAINER", lambda row: row.share.container, 4),
    ScreenColumn("NODE", lambda row: row.node),
    ScreenColumn("GPU", lambda row: _number(row.share.index), 0, True),
    ScreenColumn("MODEL", lambda row: row.model, 5),
    ScreenColumn("USED", lambda row: _number(row.share.used_mib), 0, True),
    ScreenColumn("LIMIT", lambda row: _number(row.share.limit_mib), 0, True),
    ScreenColumn("PEAK", lambda row: _number(row.share.peak_mib), 1, True),
    ScreenColumn("BUSY%", lambda row: _number(row.busy_percent), 0, True),
    ScreenColumn("COMPUTE", lambda row: row.share.compute, 0, True),
    ScreenColumn("REFUSED", lambda row: _number(row.refusals), 3, True),
)
_GPUS: tuple[ScreenColumn[GpuRow], ...] = (
    ScreenColumn("NODE", lambda row: row.node),
    ScreenColumn("GPU", lambda row: str(row.index), 0, True),
    ScreenColumn("MODEL", lambda row: row.model, 2),
    ScreenColumn("MODE", lambda row: row.mode, 3),
    ScreenColumn("USED", lambda row: _number(row.memory_used_mib), 0, True),
    ScreenColumn("GRANTED", lambda row: _number(row.memory_granted_mib), 0, True),
    ScreenColumn("MEMORY", lambda row: str(row.memory_mib), 0, True),
    ScreenColumn("BUSY%", lambda row: _number(row.busy_percent), 0, True),
    ScreenColumn("COMPUTE", lambda row: row.compute, 0, True),
    ScreenColumn("PODS", lambda row: str(len(row.pods)), 0, True),
    ScreenColumn("STATE", lambda row: "cordoned" if row.cordoned and row.health == "healthy" else row.health, 1),
)
_SHARE_ORDERS: dict[str, Callable[[PodShare], Any]] = {
    "used": lambda row: -(row.share.used_mib or 0),
    "busy": lambda row: -(row.busy_percent or 0),
    "limit": lambda row: -row.share.limit_mib,
    "refused": lambda row: -(row.refusals or 0),
    "pod": lambda row: (row.namespace, row.pod),
    "node": lambda row: (row.node, row.share.index or 0),
}
_GPU_ORDERS: dict[str, Callable[[GpuRow], Any]] = {
    "used": lambda row: -(row.memory_used_mib or 0),
    "busy": lambda row: -(row.busy_percent or 0),
    "limit": lambda row: -row.memory_mib,
    "refused": lambda row: 0,
    "pod": lambda row: -len(row.pods),
    "node": lambda row: (row.node, row.index),
}
ORDERS = tuple(_SHARE_ORDERS)


def parse_filter(text: str) -> dict[str, str]:
    """What each field has to contain: `node=n1 web` is part of a node and of a pod. Raises BadInput."""
    wanted: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals:
            key, value = "pod", word
        if key not in _FILTERS:
            raise BadInput(
                f"a filter is one of {', '.join(_FILTERS)} and =, or part of the name of a pod, got {word!r}"
            )
        wanted[key] = value.lower()
    return wanted


@dataclass
class TopScreen:
    """`warning` is shown until it is cleared. `typed` is the filter while it is typed, else None."""

    order: str = "used"
    reverse: bool = False
    gpus: bool = False
    filter: str = ""
    warning: str = ""
    usage: ShownReading = field(default_factory=ShownReading)
    typed: str | None = None
    offset: int = 0
    ended: bool = False

    def press(self, key: str, page: int = 10) -> None:
        """A key: one character, or `up`, `down`, `page up`, `page down`, `enter`, `escape`, `erase`."""
        if self.typed is not None:
            self._type(key)
        elif key in ("q", "escape"):
            self.ended = True
        elif key in ("g", "p"):
            self.gpus, self.offset = key == "g", 0
        elif key == "s":
            self.order, self.offset = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)], 0
        elif key == "r":
            self.reverse = not self.reverse
        elif key == "/":
            self.typed = self.filter
        else:
            steps = {"down": 1, "j": 1, "up": -1, "k": -1, "page down": page, " ": page, "page up": -page}
            self.offset = max(0, min(self.offset + steps.get(key, 0), len(self._rows()) - 1))

    def lines(self, width: int, height: int) -> list[str]:
        """All lines of a screen of this size."""
        if width < 1 or height < 1:
            return []
        rows = self._rows()
        room = max(0, height - _AROUND - 1)
        self.offset = max(0, min(self.offset, len(rows) - room))
        shown = rows[self.offset : self.offset + room]
        columns: Sequence[ScreenColumn[Any]] = _GPUS if self.gpus else _SHARES
        table = screen_table(columns, shown, width)
        body = [self._title(len(rows)), self._message(), *table]
        keys = _HELP if self.typed is None else "enter to use the filter, escape to leave it as it was"
        body = [*body[: height - 1], *[""] * (height - 1 - len(body)), keys]
        return [shortened(printable(line), width) for line in body][-height:]

    def _type(self, key: str) -> None:
        assert self.typed is not None
        if key == "escape":
            self.typed = None
        elif key == "erase":
            self.typed = self.typed[:-1]
        elif key == "enter":
            try:
                parse_filter(self.typed)
            except BadInput:
                return  # the message says what is wrong
            self.filter, self.typed, self.offset = self.typed, None, 0
        elif len(key) == 1 and key.isprintable():
            self.typed += key

    def _rows(self) -> list[Any]:
        wanted = parse_filter(self.filter)
        rows: list[Any]
        if self.gpus:
            rows = [row for row in self.usage.gpus if _gpu_matches(row, wanted)]
            rows.sort(key=_GPU_ORDERS[self.order], reverse=self.reverse)
        else:
            rows = [row for row in self.usage.shares if _share_matches(row, wanted)]
            rows.sort(key=_SHARE_ORDERS[self.order], reverse=self.reverse)
        return rows

    def _title(self, number: int) -> str:
        what = "GPUs" if self.gpus else "shares"
        silent = f", {self.usage.silent} nodes without figures" if self.usage.silent else ""
        reading = f"at {self.usage.at}" if self.usage.at else "reading the cluster"
        order = f"{self.order}{', reversed' if self.reverse else ''}"
        return f"lamina top: {number} {what} by {order}, memory in MiB, {reading}{silent}"

    def _message(self) -> str:
        """The warning goes before the filter: figures on the screen may be old."""
        if self.typed is not None:
            try:
                parse_filter(self.typed)
            except BadInput as problem:
                return f"Filter: {self.typed}_   {problem}"
            return f"Filter: {self.typed}_"
        if self.warning:
            return f"Warning: {self.warning}"
        return f"Filter: {self.filter}" if self.filter else ""


def printable(text: str) -> str:
    """The text without characters that a terminal would take for commands."""
    return "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") else each for each in text)


def _share_matches(row: PodShare, wanted: dict[str, str]) -> bool:
    values = {"node": row.node, "namespace": row.namespace, "pod": row.pod, "model": row.model}
    return all(part in values[key].lower() for key, part in wanted.items())


def _gpu_matches(row: GpuRow, wanted: dict[str, str]) -> bool:
    """A GPU is shown for a pod or namespace if one of its pods is."""
    pods = [name.lower().split("/") for name in row.pods]
    tests = {
        "node": lambda part: part in row.node.lower(),
        "model": lambda part: part in row.model.lower(),
        "namespace": lambda part: any(part in namespace for namespace, _ in pods),
        "pod": lambda part: any(part in pod for _, pod in pods),
    }
    return all(tests[key](part) for key, part in wanted.items())
