"""`lamina top` reads a cluster, says so while it cannot, and leaves the terminal as it was."""

import asyncio
import signal
from collections.abc import Sequence

import pytest

from lamina.cli.screen.source import TopCluster, TopReading
from lamina.cli.screen.state import TopScreen
from lamina.cli.top import refresh
from lamina.errors import LaminaError
from lamina.ports.clock import FakeClock
from lamina.ports.kube import INVENTORIES, PODS, NotFound, Refused, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.cli.screen_world import lines, press, running
from tests.operations.agent_pages import serve
from tests.terminal import CTRL_C, Terminal
from tests.waiting import wait_until
from tests.worlds.clusters import container, pod

WORLD = "tests.cli.screen_world"


def source(kube: FakeKube) -> TopCluster:
    return TopCluster(kube, FakeClock(), "https://server")


async def test_what_containers_use_is_read() -> None:
    screen = TopScreen()
    await refresh(source(await running()), screen)
    [row] = screen.lines
    assert (row.pod, row.used_mib, row.limit_mib, row.peak_mib, row.status) == ("runs", 403, 1000, 900, "Running")
    assert (row.busy_percent, row.refusals, row.gpu_index, row.model) == (40.0, 2, 0, "Tesla T4")
    assert screen.reading.gpus[0].memory_used_mib == 500 and screen.reading.silent == 0


async def test_pods_that_wait_are_rows_and_why_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    kube, screen = await running(), TopScreen()
    await kube.create(PODS, pod("waits", container(gpu=1, gpumem=99000)), namespace="default")
    await refresh(source(kube), screen)
    assert [(row.pod, row.status, row.waits) for row in screen.rows] == [
        ("runs", "Running", False),
        ("waits", "Pending", True),
    ]
    for name in ("runs", "waits"):
        printed = await Commands(monkeypatch, kube).run("why", name)
        assert list(await source(kube).why("default", name)) == printed.output.splitlines()
    with pytest.raises(LaminaError, match="there is no pod gone in namespace default"):
        await source(kube).why("default", "gone")


EXPIRED = Refused("GET nodes: Unauthorized")


async def test_the_warning_goes_when_the_cluster_is_back() -> None:
    kube, screen = await running(), TopScreen()
    await refresh(source(kube), screen)
    for error in (Unreachable("the Kubernetes server does not answer"), NotFound("no such kind"), EXPIRED):
        kube.failing["list"] = lambda resource, name, error=error: error if resource == INVENTORIES else None
        await refresh(source(kube), screen)
        shown = lines(screen, 80, 24)
        assert shown[2].startswith("Warning: ") and "last read" in shown[0]
        assert "runs" in shown[4], "the last figures stay"
    del kube.failing["list"]
    await refresh(source(kube), screen)
    assert screen.warning == "" and lines(screen, 80, 24)[2] == ""


async def test_a_cluster_that_was_never_there_ends_the_command() -> None:
    kube = await running()
    kube.failing["list"] = lambda resource, name: EXPIRED
    with pytest.raises(Refused):
        await refresh(source(kube), TopScreen())


@pytest.mark.parametrize("page", [None, b"\xff", b"lamina_gpu_memory_used_bytes{", b"<html>no</html>"])
async def test_a_node_whose_page_cannot_be_read_is_counted(page: bytes | None) -> None:
    kube, screen = await running(), TopScreen()
    for place in list(kube.pages):
        kube.pages.pop(place) if page is None else kube.pages.update({place: page})
    await refresh(source(kube), screen)
    assert screen.lines[0].used_mib is None
    assert screen.reading.silent == (0 if page == b"<html>no</html>" else 1)
    if screen.reading.silent:
        shown = lines(screen, 160, 24)
        assert "1 node without figures" in shown[1] and "No usage data from n" in shown[2]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-5", "1e300"])
async def test_a_page_that_lies_is_not_believed(value: str) -> None:
    kube, screen = await running(), TopScreen()
    used = f'lamina_gpu_memory_used_bytes{{node="n",gpu="GPU-n-0",index="0",model="Tesla T4"}} {value}\n'
    serve(kube, "n", used)
    await refresh(source(kube), screen)
    assert screen.reading.gpus[0].memory_used_mib is None and screen.reading.silent == 1


async def test_all_rows_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await running()
    commands = Commands(monkeypatch, kube)
    ended = await commands.run("top", "--once")
    assert ended.code == 0 and ended.rows[3][:4] == ["default", "runs", "main", "n"]
    assert (await commands.run("top", "--once", "--pod", "other")).output.startswith("lamina top: 0 of 1 share by used")
    assert "Tesla T4" in (await commands.run("top", "--once", "--gpus", "--node", "n")).output
    await kube.create(PODS, pod("p" * 253, container(gpu=1, gpumem=1000)), namespace="default")
    assert "p" * 253 in (await commands.run("top", "--once")).output, "a name for programs is whole"


@pytest.mark.parametrize(
    ("options", "reason"),
    [((), "lamina top needs a terminal; use --once"), (("--sort", "size"), "--sort must be one of used, busy")],
)
async def test_bad_input(options: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, await running()).run("top", *options)
    assert ended.code == 2 and ended.error.startswith(reason)


async def test_without_a_cluster_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    for command in ("get", "list"):
        kube.failing[command] = lambda resource, name: Unreachable("the Kubernetes server does not answer")
    ended = await Commands(monkeypatch, kube).run("top", "--once")
    assert (ended.code, ended.error) == (3, "the Kubernetes server does not answer")


class Slow:
    """A source that answers nothing until it may."""

    name = "a slow cluster"

    def __init__(self) -> None:
        self.answers = asyncio.Event()

    async def read(self) -> TopReading:
        await self.answers.wait()
        return TopReading(at=1.0)

    async def why(self, namespace: str, pod: str) -> Sequence[str]:
        await self.answers.wait()
        return [f"{namespace}/{pod} waits"]


async def test_keys_do_not_wait_for_a_reading() -> None:
    slow, screen = Slow(), TopScreen(source=Slow.name)
    reading = asyncio.create_task(refresh(slow, screen))
    await asyncio.sleep(0)
    assert any("Reading a slow cluster" in line for line in lines(screen))
    assert press(screen, "?").page == "help" and press(screen, "q", "q").ended
    slow.answers.set()
    await reading


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 12), (40, 5), (2, 1)])
def test_q_leaves_the_terminal_as_it_was(size: tuple[int, int]) -> None:
    with Terminal("stays", "top", module=WORLD, width=size[0], height=size[1]) as terminal:
        terminal.until_shown("\x1b[?1006h")
        wait_until(lambda: not terminal.is_as_before, lambda: terminal.shown)
        terminal.type(b"q")
        assert terminal.ended() == 0
        assert terminal.is_as_before and terminal.shown.endswith("\x1b[?1049l")


def test_keys_the_mouse_and_another_size() -> None:
    with Terminal("stays", "top", module=WORLD, width=80, height=24) as terminal:
        terminal.until_shown("1 share")
        terminal.until_shown("runs")
        terminal.resize(100, 30)
        terminal.until_shown("\x1b[30;1H")
        terminal.type(b"\x1b[<0;3;5M\x1b[<0;3;5m\x1b[<0;3;5M\x1b[<0;3;5m")
        terminal.until_shown("Pod default/runs")
        terminal.type(b"w")
        terminal.until_shown("runs is not pending: it is Running on node n.")
        terminal.type(b"qq")
        assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)], ids=str
)
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals, code: int) -> None:
    with Terminal("hangs", "top", module=WORLD) as terminal:
        terminal.until_shown("runs")
        terminal.signal(number)
        assert terminal.ended() == code
        assert terminal.is_as_before and terminal.shown.endswith("\x1b[?1049l") and "Traceback" not in terminal.shown


def test_ctrl_c_ends_the_screen() -> None:
    with Terminal("stays", "top", module=WORLD) as terminal:
        terminal.until_shown("runs")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130 and terminal.is_as_before


def test_a_fault_leaves_the_terminal_as_it_was_and_shows_what_was_printed_meanwhile() -> None:
    with Terminal("fault", "top", "--every", "0.5", module=WORLD) as terminal:
        terminal.until_shown("runs")
        assert terminal.ended() == 1 and terminal.is_as_before
        screen, _, after = terminal.shown.rpartition("\x1b[?1049l")
        assert "a login program wants a word" in after and "a login program wants a word" not in screen
        assert after.rstrip().endswith("RuntimeError: a fault of the program")


def test_a_cluster_that_goes_away_is_said_on_the_screen() -> None:
    with Terminal("goes", "top", "--every", "0.5", module=WORLD) as terminal:
        terminal.until_shown("Warning: the Kubernetes server does not answer")
        terminal.until_shown("last read")
        terminal.type(b"q")
        assert terminal.ended() == 0


def test_no_color_is_no_color() -> None:
    with Terminal("stays", "top", module=WORLD, environment={"NO_COLOR": "1"}) as terminal:
        terminal.until_shown("runs")
        terminal.type(b"q")
        assert terminal.ended() == 0
        assert "\x1b[7m" in terminal.shown and not any(f"\x1b[{color}m" in terminal.shown for color in range(30, 38))


def test_a_terminal_that_cannot_move_its_cursor_is_refused() -> None:
    with Terminal("stays", "top", module=WORLD, environment={"TERM": "dumb"}) as terminal:
        assert terminal.ended() == 2 and "TERM is dumb; use --once" in terminal.shown
