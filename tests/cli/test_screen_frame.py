"""The frames of `lamina top`: as pictures in several sizes, in color and without, and whatever a cluster contains."""

import io
import itertools

import pytest
from rich.console import Console

from lamina.cli.screen.frame import frame
from lamina.cli.screen.source import TopReading
from lamina.cli.screen.state import TopScreen
from lamina.cli.screen.text import ASCII
from lamina.report.gpus import GpuRow
from lamina.report.pods import UnplacedPod
from lamina.report.shares import PodShare
from tests.cli.screen_pictures import FOLDER, KEYS, pictures
from tests.cli.screen_world import NAMES, busy_cluster, gpu, lines, press, screen, share

PICTURES = pictures()


@pytest.mark.parametrize("name", PICTURES)
def test_the_screen_looks_like_its_picture(name: str) -> None:
    assert PICTURES[name] == (FOLDER / f"{name}.txt").read_text()


def test_each_picture_is_of_a_screen() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == PICTURES.keys()


def everywhere(name: str) -> tuple[PodShare, GpuRow]:
    """A share and a GPU with this name in each field that has one."""
    row = share(name, namespace=name, container=name, node=name, model=name, gpu=name, status=name)
    return row, gpu(0, node=name, gpu=name, model=name, mode=name, health=name, pods=(name, f"{name}/{name}"))


WORLDS = {name: everywhere(text) for name, text in NAMES.items()}


@pytest.mark.parametrize("name", [*WORLDS, "nothing", "many"])
@pytest.mark.parametrize("page", [*KEYS, "why"])
def test_a_screen_has_its_size_whatever_is_on_it(name: str, page: str) -> None:
    known = WORLDS.get(name)
    many = [share(f"p{number}") for number in range(300)] if name == "many" else []
    text = NAMES.get(name, "")
    shown = TopScreen(source=text or "a cluster")
    rows = TopReading([known[1]] if known else [], [known[0]] if known else many, (), 1.0, 2, [text] if text else [])
    shown.take(rows)
    shown.take(rows)
    press(shown, *KEYS.get(page, ("w",)))
    if shown.asked:
        shown.explain(shown.asked, [text, f"  {text}"])
    for warning, width, height in itertools.product(("", text), (1, 20, 80, 200), (1, 3, 5, 24)):
        shown.warning = warning
        drawn = frame(shown, width, height)
        assert len(drawn) == height
        assert all(line.cell_len <= width and line.plain.isprintable() for line in drawn)


@pytest.mark.parametrize("size", [(0, 24), (80, 0), (-1, -1)])
def test_no_room_is_no_line(size: tuple[int, int]) -> None:
    assert frame(screen(share("web")), *size) == []


def test_ten_thousand_pods_are_measured_once_per_reading() -> None:
    calls = 0

    class Counted(str):
        def isprintable(self) -> bool:
            nonlocal calls
            calls += 1
            return super().isprintable()

    shown = screen(*(share(Counted(f"pod-{number:05}"), used_mib=number) for number in range(10_000)))
    lines(shown, 80, 24)
    first = calls
    press(shown, *["down"] * 50)
    for _ in range(10):
        lines(shown, 80, 24)
    assert first >= 10_000 and calls - first < 1000
    assert "10000 shares" in lines(shown, 80, 24)[1] and "51/10000" in lines(shown, 80, 24)[-2]


def test_rows_that_are_alike_give_their_columns_away_first() -> None:
    alike = [share(f"{'a' * 40}-{number}", namespace="the-only-namespace") for number in range(3)]
    [head] = [line for line in lines(screen(*alike), 80, 24) if "POD" in line]
    assert "NAMESPACE" not in head and "NODE" not in head and "BUSY%" in head
    unlike = [share(f"{'a' * 40}-{number}", namespace=f"namespace-{number}") for number in range(3)]
    [head] = [line for line in lines(screen(*unlike), 80, 24) if "POD" in line]
    assert "NAMESPACE" in head


def test_numbers_are_never_shortened() -> None:
    shown = lines(screen(share("p" * 200, used_mib=1234567, limit_mib=2345678)), 80, 24)
    assert any("1234567 2345678" in line and "…" in line for line in shown)


def test_what_is_not_known_is_a_dash() -> None:
    row = share("p", used_mib=None, peak_mib=None, busy_percent=None, refusals=None, compute_percent=None, index=None)
    cells = lines(screen(row), 200, 24)[4].split()
    assert cells == [
        "team",
        "p",
        "main",
        "node-1",
        "-",
        "Tesla",
        "T4",
        "-",
        "-",
        "1000",
        "-",
        "-",
        "whole",
        "-",
        "Running",
    ]


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (TopScreen(source="a cluster"), "Reading a cluster ..."),
        (screen(), "No pod has or waits for part of a GPU; g shows the GPUs."),
        (screen(gpus=()), "No pod has"),
        (screen(share("web"), filter="other"), "Nothing matches the filter; escape clears it."),
        (press(screen(), "g"), "There are no GPUs."),
    ],
)
def test_an_empty_table_says_why(shown: TopScreen, sentence: str) -> None:
    assert any(sentence in line for line in lines(shown))


def test_a_warning_goes_before_the_filter_and_notes() -> None:
    shown = screen(share("web"), filter="web")
    shown.reading = shown.reading._replace(notes=["an agent is silent"])
    assert lines(shown)[2].startswith("Filter: web")
    shown.warning = "the cluster does not answer"
    assert lines(shown)[2] == "Warning: the cluster does not answer" and "last read 22:13:20Z" in lines(shown)[0]
    assert lines(shown, 80, 5)[0].startswith("Warning: ")
    shown.warning = shown.filter = ""
    assert lines(shown)[2] == "Warning: an agent is silent"


def sent(shown: TopScreen, **of_console: object) -> str:
    """What a terminal gets for a frame."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, **of_console)  # type: ignore[arg-type]
    with console.capture() as captured:
        for line in frame(shown, 80, 24):
            console.print(line, soft_wrap=True)
    return captured.get()


def test_colors_say_how_full_and_what_is_wrong() -> None:
    full, waits = share("full", used_mib=990), UnplacedPod("team", "batch", "Pending")
    shown = TopScreen()
    shown.take(TopReading((gpu(0, health="XID 79"),), (full,), (waits,), 1.0))
    press(shown, "down")
    text = sent(shown, color_system="standard")
    assert "\x1b[31m█████" in text and "\x1b[1;31m1 not healthy" in text and "\x1b[33m1 waiting" in text
    assert "\x1b[7m" in text, "the selected row"


def test_without_colors_the_selected_row_still_differs() -> None:
    text = sent(press(screen(share("full", used_mib=990), share("b")), "down"), color_system="standard", no_color=True)
    assert "\x1b[7m" in text and not any(f"\x1b[{code}m" in text for code in ("31", "32", "33", "34", "36", "1;31"))


def test_a_terminal_without_unicode_gets_ascii() -> None:
    shown = TopScreen(source="a cluster")
    shown.take(busy_cluster())
    for keys in KEYS.values():
        press(shown, *keys)
        assert all(line.plain.isascii() for line in frame(shown, 80, 24, ASCII))
        press(shown, "escape", "escape", "p")
