"""Texts on the screen of `lamina top`: whatever names contain, a terminal gets so many columns and no command."""

import pytest

from lamina.cli.printable import printable
from lamina.cli.screen.pages import wrapped
from lamina.cli.screen.text import ASCII, bar, curve, padded, pieces, shortened, styled, width_of
from tests.cli.screen_world import NAMES

EACH = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@EACH
def test_no_character_of_a_name_is_a_command_or_a_line(name: str) -> None:
    shown = styled((name, "bold")).plain
    assert shown.isprintable() and not any("\x7f" <= each <= "\x9f" for each in shown)
    assert printable(shown) == shown
    shown.encode()


@EACH
@pytest.mark.parametrize("width", [0, 1, 2, 3, 8, 21, 80, 300])
def test_a_name_takes_exactly_its_columns(name: str, width: int) -> None:
    assert width_of(padded(printable(name), width)) == width
    assert width_of(shortened(printable(name), width)) <= width


def test_names_lose_their_middle_and_keep_their_end() -> None:
    assert shortened("embeddings-7d9f6c5b8d-x2x9f", 15) == "embeddi…d-x2x9f"
    assert shortened("embeddings-7d9f6c5b8d-x2x9f", 15, ASCII.cut) == "embeddi~d-x2x9f"
    assert shortened("short", 5) == "short"
    assert shortened("模型推理服务器", 7) == "模 …器"


def test_marks_stay_with_their_letters() -> None:
    assert shortened("e\u0301" * 10, 5).count("\u0301") == 4


@EACH
@pytest.mark.parametrize("width", [1, 2, 10, 40, 80])
def test_pages_break_long_names_and_lose_nothing(name: str, width: int) -> None:
    text = f"  pod {name} waits"
    shown = list(wrapped(text, width))
    assert all(width_of(line) <= max(width, 2) for line in shown)
    joined = "".join("".join(shown).split())
    assert joined == "".join(printable(text).split())


def test_pieces_are_never_empty_and_never_wider() -> None:
    assert list(pieces("abcdef", 4)) == ["abcd", "ef"]
    assert list(pieces("模型", 1)) == ["模", "型"]
    assert list(pieces("", 4)) == [""]


@pytest.mark.parametrize("width", [0, 1, 6, 24])
@pytest.mark.parametrize("used", [None, -1.0, 0.0, 0.01, 0.4, 0.999, 1.0, 7.5])
@pytest.mark.parametrize("granted", [None, 0.0, 0.5, 3.0])
def test_a_bar_has_its_width_whatever_a_page_says(width: int, used: float | None, granted: float | None) -> None:
    for glyphs in (ASCII, ASCII._replace(eighths=" ▏▎▍▌▋▊▉█")):
        assert sum(len(text) for text, _ in bar(width, used, granted, "green", glyphs)) == width


def test_a_bar_tells_used_from_granted_and_unknown_from_zero() -> None:
    assert "".join(text for text, _ in bar(8, 0.25, 0.5, "green", ASCII)) == "##==...."
    assert "".join(text for text, _ in bar(8, 0.0, None, "green", ASCII)) == "........"
    assert "".join(text for text, _ in bar(8, None, None, "green", ASCII)) == " " * 8


def test_a_curve_shows_the_last_readings() -> None:
    assert curve([0, 50, None, 100], 3) == "▅ █"
    assert curve([0, 100], 0) == "" and curve([], 5) == ""
