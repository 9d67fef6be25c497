"""All lines of the screen for a size of the terminal: the title, totals, a message, the table or a page, and keys."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.text import Text

from lamina.cli.printable import printable
from lamina.cli.screen import table
from lamina.cli.screen.columns import Filled, load_style, percent
from lamina.cli.screen.history import ALL, totals
from lamina.cli.screen.pages import page_lines, page_title
from lamina.cli.screen.rows import PodLine, falls, parse_filter, state_of
from lamina.cli.screen.state import DETAILS, WHY, FrameLayout, TopScreen
from lamina.cli.screen.text import UNICODE, Glyphs, Part, bar, curve, padded, shortened, styled, width_of
from lamina.errors import BadInput
from lamina.report.gpus import HEALTHY, GpuRow

_SPACIOUS, _ALL_PARTS, _SOME_PARTS = 16, 10, 4
"""From which height there is a line for messages even without one; the totals and the line about the selected row; and
the title and the keys."""
_WIDE, _WIDEST = 70, 120
"""From which widths totals are in words."""
_MIB_PER_GIB = 1024


def frame(screen: TopScreen, width: int, height: int, glyphs: Glyphs = UNICODE) -> list[Text]:
    """As many lines as the terminal has, none wider than it. Keeps in the screen where these have the rows."""
    if width < 1 or height < 1:
        return []
    above = [_message(screen, width, glyphs) or _title(screen, width, glyphs)] if height >= _SOME_PARTS else []
    below = [_keys(screen, width, glyphs)] if height >= _SOME_PARTS else []
    if height >= _ALL_PARTS:
        message = _message(screen, width, glyphs)
        above = [_title(screen, width, glyphs), _totals(screen, width, glyphs)]
        above += [message or styled()] if message or height >= _SPACIOUS else []
        below = [_selected(screen, width, glyphs), *below] if not screen.page else below
    room = max(1, height - len(above) - len(below))
    body = _page(screen, width, room, glyphs) if screen.page else _table(screen, width, room, len(above), glyphs)
    lines = [*above, *body, *[styled()] * (room - len(body)), *below]
    for line in lines:
        line.truncate(width)
    return lines[:height]


def plain_lines(screen: TopScreen) -> list[str]:
    """All rows as text without bars, as wide as they are, for files and programs."""
    columns = [column for column in screen.columns if not column.bar]
    rows = screen.rows
    measured = table.measure(columns, rows, [column.title for column in columns])
    placed = table.place(measured, sum(each.natural + 1 for each in measured))
    lines = [table.head(placed, {}), *("".join(text for text, _ in table.line(placed, row)) for row in rows)]
    filtered = f"Filter: {screen.filter}" if screen.filter else ""
    warned = [f"Warning: {note}" for note in screen.reading.notes]
    return [line.rstrip() for line in (_summary(screen), filtered, *lines, *warned)]


def _table(screen: TopScreen, width: int, room: int, first: int, glyphs: Glyphs) -> list[Text]:
    rows, shown_rows = screen.rows, room - 1
    screen.scroll_to(max(1, shown_rows))
    shown = rows[screen.offset : screen.offset + shown_rows]
    mark = glyphs.falling if falls(screen.order, reverse=screen.reverse) else glyphs.rising
    titles = [f"{each.title}{mark if each.order == screen.order else ''}" for each in screen.columns]
    placed = table.place(screen.measured(titles), width)
    named = {column.title: title for column, title in zip(screen.columns, titles, strict=True)}
    spans = [(each.start, each.start + each.width, each.column.order) for each in placed]
    screen.layout = FrameLayout(first, first + 1, len(shown), spans)
    lines = [styled((table.head(placed, named, glyphs), "bold"))]
    for index, row in enumerate(shown, screen.offset):
        line = styled(*table.line(placed, row, glyphs))
        if index == screen.cursor:
            line = styled((line.plain + " " * (width - line.cell_len), "reverse"))
        lines.append(line)
    return lines if rows else [lines[0], *_nothing(screen, width, glyphs)][:room]


def _nothing(screen: TopScreen, width: int, glyphs: Glyphs) -> Iterator[Text]:
    """Why the table is empty."""
    if screen.reading.at is None:
        sentence = f"Reading {screen.source} ..."
    elif screen.filter or screen.typed:
        sentence = "Nothing matches the filter; escape clears it."
    else:
        sentence = "There are no GPUs." if screen.gpus else "No pod has or waits for part of a GPU; g shows the GPUs."
    yield styled()
    yield styled((shortened(sentence, width, glyphs.cut), ""))


def _page(screen: TopScreen, width: int, room: int, glyphs: Glyphs) -> list[Text]:
    screen.layout = FrameLayout()
    lines = page_lines(screen, width, glyphs)
    screen.page_offset = max(0, min(screen.page_offset, len(lines) - room + 1))
    shown = lines[screen.page_offset : screen.page_offset + room - 1]
    more = len(lines) - screen.page_offset - len(shown)
    title = f"{page_title(screen)}{f'  ({more} more lines below)' if more else ''}"
    return [styled((shortened(title, width, glyphs.cut), "bold")), *shown]


def _title(screen: TopScreen, width: int, glyphs: Glyphs) -> Text:
    at = _time(screen)
    left = f"lamina top  {screen.source}"
    room = width - width_of(at) - 1
    if room < width_of("lamina top") + 4:
        return styled((shortened(_summary(screen), width, glyphs.cut), "bold"))
    left = shortened(left, room, glyphs.cut)
    old = "bold red" if screen.warning else "dim"
    return styled(
        (left[:10], "bold"), (left[10:], "cyan"), (" " * (width - width_of(left) - width_of(at)), ""), (at, old)
    )


def _totals(screen: TopScreen, width: int, glyphs: Glyphs) -> Text:
    """What there is in all, as far as there is room: the first parts say most."""
    reading, sums = screen.reading, totals(screen.reading.gpus)
    if reading.at is None:
        return styled()
    memory, busy = sums.memory, Filled(None if sums.busy_percent is None else sums.busy_percent / 100)
    room = max(6, min(30, (width - 60) // 2))
    sick = sum(row.health != HEALTHY for row in reading.gpus)
    cordoned = sum(state_of(row) == "cordoned" for row in reading.gpus)
    waiting = len(reading.waiting)
    past = screen.history.of(ALL)
    used = f" {percent(memory.used)}"
    if width >= _WIDE:
        used = f"{used} used, {percent(memory.granted)} granted"
    if width >= _WIDEST:
        used = f"{used} of {sums.memory_mib / _MIB_PER_GIB:.0f} GiB"
    groups: list[list[Part]] = [
        [(f"{_shown(screen)}", "bold")],
        [(f"{sick} not healthy", "bold red")] if sick else [],
        [(f"{waiting} waiting", "yellow")] if waiting else [],
        [("memory ", ""), *bar(room, memory.used, memory.granted, load_style(memory.used), glyphs), (used, "")],
        [("busy ", ""), *bar(room // 2, busy.used, None, "cyan", glyphs), (f" {percent(busy.used)}", "")],
        [(f"{cordoned} cordoned", "yellow")] if cordoned else [],
        [(_silent(reading.silent), "yellow")] if reading.silent else [],
        [("busy was ", "dim"), (curve(list(past.busy), 40, glyphs), "cyan")] if len(past.busy) > 1 else [],
    ]
    parts: list[Part] = []
    for group in filter(None, groups):
        taken = sum(width_of(text) for text, _ in parts)
        if taken + 2 + sum(width_of(text) for text, _ in group) <= width:
            parts += [("  ", ""), *group] if parts else group
    return styled(*parts)


def _message(screen: TopScreen, width: int, glyphs: Glyphs) -> Text | None:
    """What is typed, or what is wrong, or by what is filtered: figures on the screen may be old."""
    if screen.typed is not None:
        try:
            parse_filter(screen.typed)
            problem = ""
        except BadInput as error:
            problem = f"   {error}"
        typed = screen.typed[-max(1, width - 10) :]
        return styled(("Filter: ", "bold"), (typed, ""), ("_", "bold"), (problem, "red"))
    if screen.warning:
        return styled((shortened(f"Warning: {screen.warning}", width, glyphs.cut), "red"))
    if screen.filter:
        return styled(("Filter: ", "bold"), (screen.filter, "cyan"), ("  (escape clears it)", "dim"))
    notes = " ".join(screen.reading.notes)
    return styled((shortened(f"Warning: {notes}", width, glyphs.cut), "yellow")) if notes else None


def _selected(screen: TopScreen, width: int, glyphs: Glyphs) -> Text:
    """The whole name of the selected row, which the table may have shortened."""
    row = screen.selected
    if isinstance(row, GpuRow):
        name, more = f"{row.node}  GPU {row.index}", f"  {row.model}  {row.gpu}"
    elif isinstance(row, PodLine):
        name = "/".join(filter(None, (row.namespace, row.pod)))
        more = f"  {row.status}" if row.waits else f"  {row.container}  {row.node} GPU {row.gpu_index}  {row.model}"
    else:
        return styled()
    place = f"  {screen.cursor + 1}/{len(screen.rows)}"
    room = width - width_of(place)
    name = shortened(printable(name), room, glyphs.cut)
    rest = room - width_of(name)
    return styled((name, "cyan"), (padded(printable(more), rest, cut=glyphs.cut), "dim"), (place, "dim"))


def _keys(screen: TopScreen, width: int, glyphs: Glyphs) -> Text:
    """The keys that do something now, as many as there is room for."""
    if screen.typed is not None:
        keys: Sequence[tuple[str, str]] = [("enter", "use the filter"), ("escape", "leave it as it was")]
    elif screen.page:
        others = [("w", "why")] if screen.page == DETAILS else [("enter", "details")] if screen.page == WHY else []
        keys = [("escape", "back"), (glyphs.up_down, "scroll"), *others, ("?", "help")]
    else:
        view = ("p", "pods") if screen.gpus else ("g", "GPUs")
        more = [("s", "sort"), ("r", "reverse"), (glyphs.up_down, "select")]
        keys = [("q", "quit"), ("?", "help"), ("enter", "details"), ("w", "why"), view, ("/", "filter"), *more]
    parts: list[Part] = []
    for key, meaning in keys:
        group = [(key, "bold"), (f" {meaning}", "dim")]
        if sum(width_of(text) for text, _ in (*parts, *group)) + 2 <= width:
            parts += [("  ", ""), *group] if parts else group
    return styled(*parts)


def _summary(screen: TopScreen) -> str:
    """The title where there is room for no other line."""
    silent = f", {_silent(screen.reading.silent)}" if screen.reading.silent else ""
    order = f"{screen.order}{', reversed' if screen.reverse else ''}"
    return f"lamina top: {_shown(screen)} by {order}, memory in MiB, {_time(screen)}{silent}"


def _shown(screen: TopScreen) -> str:
    count = len(screen.rows) if screen.gpus else sum(not row.waits for row in screen.rows)
    every = len(screen.reading.gpus) if screen.gpus else len(screen.reading.shares)
    what = "GPU" if screen.gpus else "share"
    return f"{count}{f' of {every}' if count != every else ''} {what}{'' if every == 1 else 's'}"


def _silent(nodes: int) -> str:
    return f"{nodes} {'node' if nodes == 1 else 'nodes'} without figures"


def _time(screen: TopScreen) -> str:
    if screen.reading.at is None:
        return "reading"
    return f"{'last read ' if screen.warning else ''}{datetime.fromtimestamp(screen.reading.at, UTC):%H:%M:%SZ}"
