"""What covers the table: the details of a row, the lines of `lamina why`, and help. Each is a list of lines."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from lamina.cli.printable import printable
from lamina.cli.screen.columns import (
    Filled,
    busy_of,
    gpu_style,
    memory_of_gpu,
    memory_of_pod,
    number,
    percent,
    status_style,
)
from lamina.cli.screen.history import RowPast, key_of
from lamina.cli.screen.rows import FIELDS, ORDERS, PodLine, state_of
from lamina.cli.screen.state import HELP, WHY, TopScreen
from lamina.cli.screen.text import Glyphs, Part, bar, curve, pieces, shortened, styled, width_of
from lamina.cli.tables import UNKNOWN
from lamina.report.gpus import GpuRow

_LABEL = 12
_WIDEST_BAR = 40
_INDENTED = 20
"""The width beyond which lines are indented."""
_KEYS = (
    ("up, down, j, k", "select a row; so do page up, page down, home, end and the wheel of the mouse"),
    ("enter", "details of the row; a click on the selected row opens them too"),
    ("w", "why the pod waits, or what it has: the lines of `lamina why`"),
    ("g, p, tab", "GPUs, pods, the other of both"),
    ("s, S", f"sort by the next or the last of {', '.join(ORDERS)}; a click on a title sorts by it"),
    ("r", "reverse the order"),
    ("/", f"filter: part of any name, or of one of {', '.join(FIELDS)}, such as `node=n1 web`"),
    ("escape", "go back; in the table, clear the filter"),
    ("q", "go back; in the table, quit"),
    ("ctrl-l", "draw the screen again"),
)
_MEANINGS = (
    "Memory is in MiB. A bar shows what is used and, for GPUs, what is granted beyond that. USED turns yellow at 75 % "
    "of the limit and red at 90 %. BUSY% is the time of the GPU that the share has used lately. PEAK is the most that "
    "a share has used, and REFUSED counts allocations that would have passed its limit. `-` is what is not known. Your "
    "terminal selects text while you hold shift."
)


def page_title(screen: TopScreen) -> str:
    """The words above a page."""
    if screen.page == HELP:
        return "Help"
    if screen.page == WHY:
        return "Why" if screen.asked is None else f"Why {screen.asked.namespace}/{screen.asked.pod}"
    if isinstance(screen.subject, GpuRow):
        return f"GPU {screen.subject.index} of {screen.subject.node}"
    return f"Pod {screen.subject.namespace}/{screen.subject.pod}" if screen.subject else ""


def page_lines(screen: TopScreen, width: int, glyphs: Glyphs) -> list[Text]:
    """All lines of the page, which may be more than fit."""
    if screen.page == HELP:
        return list(_help(width))
    if screen.page == WHY:
        asking = [f"Asking {screen.source} ..."]
        return [styled((each, "")) for text in screen.answer or asking for each in wrapped(text, width)]
    if isinstance(screen.subject, GpuRow):
        return list(_gpu(screen, screen.subject, width, glyphs))
    return list(_pod(screen, screen.subject, width, glyphs)) if screen.subject else []


def wrapped(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most this width, the further ones indented. A word that is wider is on several lines."""
    text = printable(text)
    first = " " * (len(text) - len(text.lstrip()))
    further = f"{first}  " if width > _INDENTED else ""
    line = first if width > _INDENTED else ""
    for word in text.lstrip().split(" "):
        for index, piece in enumerate(pieces(word, max(1, width - len(further)))):
            gap = " " if line.strip() else ""
            if line.strip() and (index or width_of(line) + len(gap) + width_of(piece) > width):
                yield line
                line, gap = further, ""
            line = f"{line}{gap}{piece}"
    yield line


def _help(width: int) -> Iterator[Text]:
    for key, meaning in _KEYS:
        first, *more = wrapped(meaning, max(1, width - 16)) if width > 40 else ("", *wrapped(f"  {meaning}", width))
        yield styled((f"{key:<16}" if width > 40 else key, "bold"), (first, ""))
        for each in more:
            yield styled((" " * (16 if width > 40 else 0) + each, ""))
    yield styled()
    for each in wrapped(_MEANINGS, width):
        yield styled((each.lstrip(), "dim"))


def _pod(screen: TopScreen, row: PodLine, width: int, glyphs: Glyphs) -> Iterator[Text]:
    yield from _field("status", row.status or UNKNOWN, width, status_style(row.status))
    if row.waits:
        yield styled()
        yield styled(("It has no node yet; ", ""), ("w", "bold"), (" says why.", ""))
        return
    yield from _field("node", row.node, width)
    yield from _field("container", row.container, width)
    yield from _field("GPU", f"{number(row.gpu_index)}  {row.model}", width)
    yield from _field("UUID", row.gpu, width)
    yield from _field("mode", row.mode, width)
    guaranteed = "" if row.memory_mib == row.limit_mib else f", {number(row.memory_mib)} MiB of it guaranteed"
    memory = f"{number(row.used_mib)} of {number(row.limit_mib)} MiB{guaranteed}, peak {number(row.peak_mib)} MiB"
    yield from _bar("memory", memory_of_pod(row), memory, width, glyphs)
    yield from _bar("busy", busy_of(row), f"of the GPU's time, compute: {row.compute or UNKNOWN}", width, glyphs)
    yield from _field("refused", f"{number(row.refusals)} allocations", width, "red" if row.refusals else "")
    yield from _curves(screen.history.of(key_of(row)), width, glyphs)
    others = [each for each in screen.lines if _same_pod(each, row) and key_of(each) != key_of(row)]
    yield from _holders("Other shares of this pod", others, width, glyphs)


def _gpu(screen: TopScreen, row: GpuRow, width: int, glyphs: Glyphs) -> Iterator[Text]:
    yield from _field("state", state_of(row), width, gpu_style(row))
    yield from _field("model", row.model, width)
    yield from _field("UUID", row.gpu, width)
    yield from _field("mode", row.mode, width)
    granted = f"{number(row.memory_granted_mib)} granted, {number(row.memory_free_mib)} free"
    memory = f"{number(row.memory_used_mib)} of {row.memory_mib} MiB, {granted}"
    yield from _bar("memory", memory_of_gpu(row), memory, width, glyphs)
    if row.memory_limit_mib != row.memory_granted_mib:
        lent = f"{number(row.memory_borrowed_mib)} MiB borrowed, limits of {number(row.memory_limit_mib)} MiB together"
        yield from _field("lent", lent, width)
    yield from _bar("busy", busy_of(row), f"compute: {row.compute}", width, glyphs)
    if row.slots is not None:
        yield from _field("slots", f"{number(row.slots_granted)} of {row.slots} granted", width)
    yield from _curves(screen.history.of(key_of(row)), width, glyphs)
    shares = [each for each in screen.lines if each.gpu == row.gpu]
    yield from _holders("Shares", shares, width, glyphs)
    named = {f"{each.namespace}/{each.pod}" for each in shares}
    for name in (name for name in row.pods if name not in named):
        yield styled((shortened(f"  {name}", width, glyphs.cut), ""))


def _same_pod(row: PodLine, other: PodLine) -> bool:
    return (row.namespace, row.pod) == (other.namespace, other.pod)


def _holders(title: str, rows: Sequence[PodLine], width: int, glyphs: Glyphs) -> Iterator[Text]:
    """A line for each share: its name, and what it uses."""
    if not rows:
        return
    yield styled()
    yield styled((title, "bold"))
    for row in sorted(rows, key=lambda row: -(row.used_mib or 0)):
        figures = f"  {number(row.used_mib)} of {number(row.limit_mib)} MiB  {percent(busy_of(row).used)} busy"
        name = f"  {row.namespace}/{row.pod} {row.container}"
        yield styled((shortened(name, max(8, width - width_of(figures)), glyphs.cut), ""), (figures, "dim"))


def _field(label: str, value: str, width: int, style: str = "") -> Iterator[Text]:
    """A label and its value, on several lines where it is long: details show names as they are."""
    for index, each in enumerate(wrapped(value, max(8, width - _LABEL))):
        yield styled((f"{'' if index else label:<{_LABEL}}", "dim"), (each.strip(), style))


def _bar(label: str, filled: Filled, text: str, width: int, glyphs: Glyphs) -> Iterator[Text]:
    room = min(_WIDEST_BAR, max(6, width - _LABEL - 5))
    drawn: list[Part] = bar(room, filled.used, filled.granted, filled.style, glyphs)
    yield styled((f"{label:<{_LABEL}}", "dim"), *drawn, (f"{percent(filled.used):>5}", ""))
    yield from _field("", text, width)


def _curves(past: RowPast, width: int, glyphs: Glyphs) -> Iterator[Text]:
    """How memory and time were used in the last readings."""
    room = max(0, min(120, width - _LABEL))
    if len(past.busy) > 1:
        yield styled()
        yield styled((f"{'memory was':<{_LABEL}}", "dim"), (curve(list(past.memory), room, glyphs), "green"))
        yield styled((f"{'busy was':<{_LABEL}}", "dim"), (curve(list(past.busy), room, glyphs), "cyan"))
