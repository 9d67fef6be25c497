"""What keys and the mouse change on the screen of `lamina top`, without a terminal."""

import pytest

from lamina.cli.screen.rows import ORDERS
from lamina.cli.screen.source import TopReading
from lamina.cli.screen.state import DETAILS, HELP, WHY, PodName, TopScreen
from tests.cli.screen_world import gpu, lines, pods, press, screen, share

MANY = tuple(share(f"pod-{number:03}", used_mib=1000 - number) for number in range(100))


def selected(shown: TopScreen) -> str:
    return str(shown.selected.pod)


def test_keys_sort_and_reverse() -> None:
    shown = screen(share("small", used_mib=1, busy_percent=90.0), share("large", used_mib=9, busy_percent=1.0))
    assert pods(shown) == ["large", "small"]
    assert pods(press(shown, "r")) == ["small", "large"]
    assert pods(press(shown, "r", "s")) == ["small", "large"] and shown.order == "busy"
    press(shown, *"s" * (len(ORDERS) - 1))
    assert shown.order == "used" and press(shown, "S").order == ORDERS[-1]


def test_a_filter_is_used_while_it_is_typed() -> None:
    shown = press(screen(share("web"), share("db")), "/", *"web")
    assert pods(shown) == ["web"] and shown.filter == ""
    assert pods(press(shown, "escape")) == ["db", "web"]
    assert press(shown, "/", *"db", "enter").filter == "db" and pods(shown) == ["db"]
    assert pods(press(shown, "/", "erase all")) == ["db", "web"]
    assert pods(press(shown, "escape", "escape")) == ["db", "web"] and shown.filter == ""


def test_a_filter_is_not_used_before_it_is_valid() -> None:
    shown = press(screen(share("web"), share("db"), filter="web"), "/", "erase all", *"size=1", "enter")
    assert shown.filter == "web" and pods(shown) == ["web"] and shown.typed == "size=1"
    press(shown, "erase", "q")
    assert shown.typed == "size=q" and not shown.ended
    assert press(shown, "escape").typed is None


def test_the_selected_row_stays_so_when_the_order_and_the_figures_change() -> None:
    shown = press(screen(*MANY), "down", "down")
    assert selected(shown) == "pod-002"
    press(shown, "r")
    assert selected(shown) == "pod-002" and shown.cursor == 97
    shown.take(TopReading(shares=[share("new", used_mib=5000), *MANY], at=1.0))
    assert selected(shown) == "pod-002"
    shown.take(TopReading(shares=MANY[:2], at=1.0))
    assert selected(shown) in ("pod-000", "pod-001")
    shown.take(TopReading(at=1.0))
    assert shown.selected is None and press(shown, "enter", "w", "down").page == ""


def test_before_a_row_is_selected_the_first_one_is() -> None:
    shown = screen(share("a", used_mib=2), share("b", used_mib=1))
    shown.take(TopReading(shares=[share("a", used_mib=2), share("b", used_mib=3)], at=1.0))
    assert selected(shown) == "b"


def test_scrolling_ends_at_the_first_and_the_last_row() -> None:
    shown = screen(*MANY)
    press(shown, "up")
    assert shown.cursor == 0
    press(shown, *["page down"] * 99)
    assert shown.cursor == 99 and "pod-099" in "".join(lines(shown, 160, 10))
    assert press(shown, "home").cursor == 0 and press(shown, "end", "k").cursor == 98
    assert "pod-098" in "".join(lines(shown, 160, 10))


def test_a_view_of_gpus_and_one_of_pods() -> None:
    shown = press(screen(share("web"), gpus=(gpu(0), gpu(1))), "g")
    assert [row.gpu for row in shown.rows] == ["GPU-0", "GPU-1"]
    assert pods(press(shown, "tab")) == ["web"] and press(shown, "tab").gpus and not press(shown, "p").gpus


def test_enter_opens_details_that_stay_with_their_row() -> None:
    shown = press(screen(*MANY), "down", "enter")
    assert shown.page == DETAILS and "Pod team/pod-001" in lines(shown)[3]
    shown.take(TopReading(shares=[share("new", used_mib=5000), share("pod-001", used_mib=777)], at=1.0))
    assert any("777 of 1000 MiB" in line for line in lines(shown))
    shown.take(TopReading(at=1.0))
    assert any("777 of 1000 MiB" in line for line in lines(shown)), "the last figures stay"
    assert press(shown, "escape").page == "" and not shown.ended


def test_why_is_asked_once_and_an_answer_to_another_question_is_not_shown() -> None:
    shown = press(screen(share("web"), waiting=("batch",)), "down", "w")
    assert shown.page == WHY and shown.asked == PodName("team", "batch") and shown.answer is None
    assert any("Asking https://server" in line for line in lines(shown))
    shown.explain(PodName("team", "web"), ["web is not pending"])
    assert shown.answer is None
    shown.explain(PodName("team", "batch"), ["batch is pending: 0 of 2 nodes fit."])
    assert any("batch is pending: 0 of 2 nodes fit." in line for line in lines(shown))
    press(shown, "q")
    assert (shown.page, shown.asked) == ("", None)
    shown.explain(PodName("team", "batch"), ["late"])
    assert press(shown, "w").answer is None


def test_why_needs_a_pod() -> None:
    shown = press(screen(gpus=(gpu(0),)), "g", "w")
    assert shown.asked is None and any("Reasons are about pods" in line for line in lines(shown))


@pytest.mark.parametrize("key", ["?", "h"])
def test_help_names_each_key_and_goes_away(key: str) -> None:
    shown = press(screen(*MANY), key)
    text = "\n".join(lines(shown, 100, 40))
    assert shown.page == HELP
    assert all(word in text for word in ("select", "filter", "sort", "reverse", "why", "details", "quit", "mouse"))
    assert press(shown, "q").page == "" and not shown.ended and press(shown, "q").ended


def test_a_click_selects_opens_and_sorts() -> None:
    shown = screen(*MANY)
    head = lines(shown, 160, 20)
    title = next(index for index, line in enumerate(head) if line.startswith("NAMESPACE"))
    shown.click(5, title + 3)
    assert selected(shown) == "pod-002" and shown.page == ""
    shown.click(5, title + 3)
    assert shown.page == DETAILS
    shown.click(5, title + 1)
    assert shown.page == DETAILS, "the table is covered"
    press(shown, "escape")
    lines(shown, 160, 20)
    shown.click(head[title].index("BUSY"), title)
    assert (shown.order, shown.reverse) == ("busy", False)
    shown.click(head[title].index("BUSY"), title)
    assert (shown.order, shown.reverse) == ("busy", True)
    for column, line in ((5, 0), (5, 999), (999, title), (-1, -1)):
        shown.click(column, line)
    assert (shown.order, selected(shown)) == ("busy", "pod-002")
    press(shown, "wheel down")
    assert shown.cursor != 2 or shown.reverse


def test_a_page_scrolls_within_its_lines() -> None:
    shown = press(screen(*MANY), "?", *["page down"] * 50)
    bottom = lines(shown, 60, 12)
    press(shown, "down")
    assert lines(shown, 60, 12) == bottom and "hold shift" in "".join(bottom)
    press(shown, "home")
    assert "more lines below" in "".join(lines(shown, 60, 12))
