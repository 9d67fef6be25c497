"""The screen of `lamina top`, without a terminal."""

from typing import Any

import pytest

from lamina.cli.top import frame, keys_in
from lamina.cli.top_screen import ORDERS, ShownReading, TopScreen, parse_filter
from lamina.errors import BadInput
from lamina.report.gpus import GpuRow
from lamina.report.shares import PodShare, ShareRow


def share(pod: str, **fields: Any) -> PodShare:
    known: dict[str, Any] = {
        "container": "main",
        "gpu": "GPU-0",
        "index": 0,
        "mode": "quota",
        "memory_mib": 1000,
        "limit_mib": 1000,
        "used_mib": 10,
        "peak_mib": 20,
        "compute_percent": 30,
    }
    whose: dict[str, Any] = {"namespace": "team", "node": "node-1", "model": "Tesla T4"}
    whose |= {"busy_percent": 12.0, "refusals": 0}
    whose |= {name: value for name, value in fields.items() if name in PodShare._fields}
    of_share = {name: value for name, value in fields.items() if name not in PodShare._fields}
    return PodShare(pod=pod, share=ShareRow(**known | of_share), **whose)


def gpu(index: int, **fields: Any) -> GpuRow:
    known: dict[str, Any] = {
        "node": "node-1",
        "gpu": f"GPU-{index}",
        "model": "Tesla T4",
        "mode": "quota",
        "health": "healthy",
        "cordoned": False,
        "memory_mib": 15360,
        "memory_granted_mib": 1000,
        "memory_free_mib": 14360,
        "memory_used_mib": 300,
        "memory_limit_mib": 1000,
        "memory_borrowed_mib": 0,
        "compute_percent": 100,
        "compute_granted_percent": 30,
        "compute_free_percent": 70,
        "busy_percent": 12.0,
        "slots": 10,
        "slots_granted": 1,
        "slots_free": 9,
        "pods": ("team/web",),
    }
    return GpuRow(index=index, **known | fields)


def screen(*shares: PodShare, gpus: tuple[GpuRow, ...] = (), **fields: Any) -> TopScreen:
    return TopScreen(usage=ShownReading(gpus, shares, "08:00:00Z"), **fields)


def pods(shown: TopScreen, width: int = 160, height: int = 24) -> list[str]:
    """The names of pods on the screen."""
    return [line.split()[1] for line in shown.lines(width, height)[3:-1] if line]


MANY = tuple(share(f"a-pod-with-a-long-name-{number:03}", namespace="a-long-namespace") for number in range(100))


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 24, 60])
@pytest.mark.parametrize("gpus", [False, True])
def test_a_screen_has_its_size_whatever_is_on_it(width: int, height: int, gpus: bool) -> None:
    for shown in (screen(), screen(*MANY, gpus=tuple(map(gpu, range(100))), warning="x" * 300)):
        shown.gpus = gpus
        lines = shown.lines(width, height)
        assert len(lines) == height and max(map(len, lines)) <= width


def test_what_matters_stays_at_80_columns_and_all_is_shown_at_200() -> None:
    shown = screen(*MANY)
    head = shown.lines(80, 24)[2].split()
    assert {"POD", "NODE", "GPU", "USED", "LIMIT", "BUSY%", "COMPUTE"} <= set(head) and "MODEL" not in head
    assert len(pods(shown, 80)) == 20
    assert {"NAMESPACE", "CONTAINER", "MODEL", "PEAK", "REFUSED"} <= set(shown.lines(200, 24)[2].split())


def test_numbers_are_never_shortened() -> None:
    shown = screen(share("p" * 200, used_mib=123456, limit_mib=234567))
    assert "123456 234567" in shown.lines(80, 24)[3] and "~" in shown.lines(80, 24)[3]


def test_what_is_not_known_is_a_dash() -> None:
    row = share("p", used_mib=None, peak_mib=None, busy_percent=None, refusals=None, compute_percent=None, index=None)
    assert screen(row).lines(160, 24)[3].split()[4:] == ["-", "Tesla", "T4", "-", "1000", "-", "-", "whole", "-"]


def test_keys_sort_and_reverse() -> None:
    shown = screen(share("small", used_mib=1, busy_percent=90.0), share("large", used_mib=9, busy_percent=1.0))
    assert pods(shown) == ["large", "small"]
    shown.press("r")
    assert pods(shown) == ["small", "large"]
    shown.press("r")
    shown.press("s")
    assert shown.order == "busy" and pods(shown) == ["small", "large"]
    for _ in ORDERS[1:]:
        shown.press("s")
    assert shown.order == "used"


@pytest.mark.parametrize(
    ("text", "left"),
    [("web", ["web"]), ("node=two", ["db"]), ("namespace=OPS", ["db"]), ("model=a100", ["db"]), ("node=one db", [])],
)
def test_filters(text: str, left: list[str]) -> None:
    shown = screen(share("web", node="one"), share("db", node="two", namespace="ops", model="NVIDIA A100"))
    for key in ("/", *text, "enter"):
        shown.press(key)
    assert shown.filter == text and pods(shown) == left
    assert f"Filter: {text}" in shown.lines(160, 24)[1]


def test_a_filter_is_not_used_before_it_is_valid() -> None:
    shown = screen(share("web"))
    for key in ("/", *"size=1", "enter"):
        shown.press(key)
    assert shown.filter == "" and "a filter is one of node, namespace, pod, model" in shown.lines(160, 24)[1]
    for key in ("erase", "q"):
        shown.press(key)
    assert shown.typed == "size=q" and not shown.ended
    shown.press("escape")
    assert shown.typed is None and pods(shown) == ["web"]
    with pytest.raises(BadInput, match="got 'size=1'"):
        parse_filter("size=1")


def test_gpus_are_filtered_by_their_pods_too() -> None:
    shown = screen(gpus=(gpu(0), gpu(1, pods=("ops/db",)), gpu(2, pods=())))
    shown.press("g")
    assert "3 GPUs" in shown.lines(80, 24)[0]
    shown.filter = "namespace=ops"
    assert "1 GPUs" in shown.lines(80, 24)[0]


def test_scrolling_ends_at_the_first_and_the_last_row() -> None:
    shown = screen(*MANY)
    first = pods(shown, 160, 10)
    shown.press("up")
    assert pods(shown, 160, 10) == first
    shown.press("down")
    assert pods(shown, 160, 10)[:-1] == first[1:]
    for _ in range(99):
        shown.press("page down")
    assert pods(shown, 160, 10)[-1] == MANY[-1].pod and len(pods(shown, 160, 10)) == len(first)
    shown.usage = ShownReading(shares=MANY[:3])
    assert len(pods(shown, 160, 10)) == 3


def test_names_cannot_command_the_terminal() -> None:
    text = frame(screen(share("a\x1b[2Jb\u202ec"), warning="x\x07\r\ny").lines(160, 24))
    assert "\x1b[2J" not in text and not {"\x07", "\u202e"} & set(text)
    assert text.count("\r\n") == 23


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("ab/", ["a", "b", "/"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~", ["page up", "page down"]),
        ("\x1b", ["escape"]),
        ("\r\x7f", ["enter", "erase"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1b[Hq", ["q"]),
        ("\x00\x01q", ["q"]),
    ],
)
def test_keys_are_read_from_what_terminals_send(sent: str, keys: list[str]) -> None:
    assert list(keys_in(sent)) == keys
