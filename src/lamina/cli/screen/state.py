"""What keys and the mouse change on the screen of `lamina top`. Pure: no terminal and no clock."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lamina.cli.screen.columns import GPUS, PODS, ScreenColumn
from lamina.cli.screen.history import TopHistory, key_of
from lamina.cli.screen.rows import (
    ORDERS,
    PodLine,
    Word,
    chosen_gpus,
    chosen_pods,
    gpus_in_order,
    parse_filter,
    pod_line,
    pods_in_order,
)
from lamina.cli.screen.source import TopReading
from lamina.cli.screen.table import Measured, measure
from lamina.errors import BadInput
from lamina.report.gpus import GpuRow

DETAILS, WHY, HELP = "details", "why", "help"
_STEPS = {"down": 1, "j": 1, "up": -1, "k": -1, "wheel down": 3, "wheel up": -3}
_PAGES = {"page down": 1, " ": 1, "page up": -1}
_END = 1 << 30


class PodName(NamedTuple):
    """Whose reasons are asked for."""

    namespace: str
    pod: str


class FrameLayout(NamedTuple):
    """Where the last frame had what can be clicked. Lines and columns are from 0."""

    head: int = -1
    first: int = 0
    rows: int = 0
    titles: Sequence[tuple[int, int, str]] = ()
    """From and to which column a title stands, and the order that it stands for."""


@dataclass
class TopScreen:
    """`warning` is shown until it is cleared. `typed` is the filter while it is typed, else None. `page` is what covers
    the table, and empty where nothing does."""

    source: str = ""
    order: str = "used"
    reverse: bool = False
    gpus: bool = False
    filter: str = ""
    warning: str = ""
    reading: TopReading = field(default_factory=TopReading)
    lines: Sequence[PodLine] = ()
    history: TopHistory = field(default_factory=TopHistory)
    typed: str | None = None
    cursor: int = 0
    offset: int = 0
    page: str = ""
    page_offset: int = 0
    subject: PodLine | GpuRow | None = None
    """What the page is about, as it was in the last reading that has it."""
    asked: PodName | None = None
    answer: Sequence[str] | None = None
    """The lines of `lamina why` about what is asked; None while they are on their way."""
    ended: bool = False
    layout: FrameLayout = field(default_factory=FrameLayout)
    _held: Hashable = None
    """The row that stays selected when others come before it; None until the person has moved."""
    _readings: int = 0
    _measured: tuple[object, Sequence[str], Sequence[Measured]] = (None, (), ())
    _rows: tuple[object, Sequence[Any]] = (None, ())

    def take(self, reading: TopReading) -> None:
        """Show a reading. The row that is selected stays so."""
        self.reading, self.warning, self._readings = reading, "", self._readings + 1
        self.lines = [*map(pod_line, reading.shares), *map(pod_line, reading.waiting)]
        self.history.add(reading.gpus, self.lines)
        if self.subject is not None:
            key = key_of(self.subject)
            rows: list[PodLine | GpuRow] = [*self.lines, *reading.gpus]
            found = (row for row in rows if key_of(row) == key)
            self.subject = next(found, self.subject)
        self._follow()

    def explain(self, name: PodName, lines: Sequence[str]) -> None:
        """Show what `lamina why` says, if that is still asked for."""
        if name == self.asked:
            self.answer = lines

    @property
    def columns(self) -> Sequence[ScreenColumn[Any]]:
        """Those of the table that is shown."""
        return GPUS if self.gpus else PODS

    @property
    def rows(self) -> Sequence[Any]:
        """The rows of the table in their order."""
        words = self._words()
        version = (self._readings, self.gpus, self.order, self.reverse, words)
        if self._rows[0] != version:
            self._rows = version, self._chosen(words)
        return self._rows[1]

    def measured(self, titles: Sequence[str]) -> Sequence[Measured]:
        """How wide the columns of all rows are under these titles."""
        if self._measured[0] is not self.rows or self._measured[1] != titles:
            self._measured = self.rows, titles, measure(self.columns, self.rows, titles)
        return self._measured[2]

    @property
    def selected(self) -> Any:
        """The row under the cursor; None in an empty table."""
        return self.rows[self.cursor] if self.rows else None

    def press(self, key: str, page: int = 10) -> None:
        """A key: one character or a name of `lamina.cli.screen.keyboard`. `page` is the height of the table."""
        if self.typed is not None:
            self._type(key)
        elif self.page:
            self._press_on_page(key, page)
        elif key == "q":
            self.ended = True
        elif (step := _step(key, page)) is not None:
            self._move(self.cursor + step)
        elif key == "escape":
            self.filter = ""
            self._follow()
        else:
            self._press_on_table(key)

    def click(self, column: int, line: int) -> None:
        """A click: a title sorts, a row is selected, and the selected one opens."""
        place = self.layout
        if self.page or self.typed is not None:
            return
        if line == place.head:
            order = next((order for start, end, order in place.titles if start <= column < end), "")
            if order:
                self.reverse = order == self.order and not self.reverse
                self._sort(order)
        elif place.first <= line < place.first + place.rows:
            index = self.offset + line - place.first
            if index == self.cursor and self._held is not None:
                self._open(DETAILS)
            else:
                self._move(index)

    def scroll_to(self, room: int) -> None:
        """Keep the cursor within the rows of the table."""
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))
        lowest = max(0, min(self.cursor - room + 1, len(self.rows) - room))
        self.offset = max(lowest, min(self.offset, self.cursor, max(0, len(self.rows) - room)))

    def _press_on_table(self, key: str) -> None:
        if key in ("g", "p", "tab"):
            self.gpus = not self.gpus if key == "tab" else key == "g"
            self.cursor, self.offset, self._held = 0, 0, None
        elif key in ("s", "S"):
            step = 1 if key == "s" else -1
            self._sort(ORDERS[(ORDERS.index(self.order) + step) % len(ORDERS)])
        elif key == "r":
            self.reverse = not self.reverse
            self._follow()
        elif key == "/":
            self.typed = self.filter
        elif key in ("?", "h"):
            self._open(HELP)
        elif key == "enter" and self.rows:
            self._open(DETAILS)
        elif key == "w":
            self._ask_why()

    def _press_on_page(self, key: str, page: int) -> None:
        if key in ("q", "escape", "left"):
            self.page, self.asked, self.subject = "", None, None
        elif key in ("?", "h"):
            self._open(HELP)
        elif key == "w" and self.page != HELP:
            self._ask_why()
        elif key == "enter" and self.page == WHY:
            self._open(DETAILS)
        else:
            self.page_offset = max(0, self.page_offset + (_step(key, page) or 0))

    def _ask_why(self) -> None:
        row = self.subject or self.selected
        if isinstance(row, PodLine):
            self._open(WHY)
            self.asked, self.answer = PodName(row.namespace, row.pod), None
        elif row is not None:
            self._open(WHY)
            self.asked, self.answer = None, ["Reasons are about pods: press p for the pods, select one, and press w."]

    def _open(self, page: str) -> None:
        if not self.page and self._held is None and self.rows:
            self._move(self.cursor)
        self.subject = self.subject or self.selected
        self.page, self.page_offset = page, 0

    def _sort(self, order: str) -> None:
        self.order = order
        self._follow()

    def _move(self, index: int) -> None:
        rows = self.rows
        self.cursor = max(0, min(index, len(rows) - 1))
        self._held = key_of(rows[self.cursor]) if rows else None

    def _follow(self) -> None:
        """Put the cursor back on the row that was selected, where there still is one."""
        if self._held is not None:
            keys = (index for index, row in enumerate(self.rows) if key_of(row) == self._held)
            self.cursor = next(keys, self.cursor)
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))

    def _type(self, key: str) -> None:
        assert self.typed is not None
        if key == "escape":
            self.typed = None
        elif key == "erase":
            self.typed = self.typed[:-1]
        elif key == "erase all":
            self.typed = ""
        elif key == "enter":
            try:
                parse_filter(self.typed)
            except BadInput:
                return  # the message says what is wrong
            self.filter, self.typed = self.typed, None
        elif len(key) == 1 and key.isprintable():
            self.typed += key
        self._follow()

    def _words(self) -> tuple[Word, ...]:
        """Those of what is typed as soon as it can be read."""
        try:
            return parse_filter(self.filter if self.typed is None else self.typed)
        except BadInput:
            return parse_filter(self.filter)

    def _chosen(self, words: Sequence[Word]) -> Sequence[Any]:
        if self.gpus:
            return gpus_in_order(chosen_gpus(self.reading.gpus, words), self.order, reverse=self.reverse)
        return pods_in_order(chosen_pods(self.lines, words), self.order, reverse=self.reverse)


def _step(key: str, page: int) -> int | None:
    """How far a key moves; None for one that does not."""
    if key in ("home", "end"):
        return _END if key == "end" else -_END
    return _PAGES[key] * page if key in _PAGES else _STEPS.get(key)
