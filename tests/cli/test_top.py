"""`lamina top` reads a cluster, and says so while it cannot."""

import pytest

from lamina.cli.top import refresh
from lamina.cli.top_screen import TopScreen
from lamina.ports.clock import FakeClock
from lamina.ports.kube import INVENTORIES, NotFound, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.operations.agent_pages import gpu_lines, serve, share_lines
from tests.worlds.clusters import cluster, container, grant, inventory, pod


async def running() -> FakeKube:
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    kube = await cluster(inventory("n"), runs, grant(runs, "n", 1000))
    used = share_lines("n", "runs", "GPU-n-0", data=100, context=303, limit=1000, peak=900, refusals=2, busy=40)
    serve(kube, "n", gpu_lines("n", "GPU-n-0", 500, 41) + used)
    return kube


async def test_what_containers_use_is_read() -> None:
    screen = TopScreen()
    await refresh(await running(), screen, FakeClock())
    [row] = screen.usage.shares
    assert (row.pod, row.share.used_mib, row.share.limit_mib, row.share.peak_mib) == ("runs", 403, 1000, 900)
    assert (row.busy_percent, row.refusals, row.share.index, row.model) == (40.0, 2, 0, "Tesla T4")
    assert screen.usage.gpus[0].memory_used_mib == 500 and screen.usage.silent == 0


async def test_the_warning_goes_when_the_cluster_is_back() -> None:
    kube, screen = await running(), TopScreen()
    await refresh(kube, screen, FakeClock())
    for error in (Unreachable("the Kubernetes server does not answer"), NotFound("no such kind")):
        kube.failing["list"] = lambda resource, name, error=error: error if resource == INVENTORIES else None
        await refresh(kube, screen, FakeClock())
        assert screen.lines(80, 24)[1].startswith("Warning: ")
        assert "runs" in screen.lines(80, 24)[3], "the last figures stay"
    del kube.failing["list"]
    await refresh(kube, screen, FakeClock())
    assert screen.warning == "" and screen.lines(80, 24)[1] == ""


async def test_a_node_without_figures_is_counted() -> None:
    kube, screen = await running(), TopScreen()
    kube.pages.clear()
    await refresh(kube, screen, FakeClock())
    assert screen.usage.shares[0].share.used_mib is None and "1 nodes without figures" in screen.lines(160, 24)[0]


async def test_all_rows_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await running())
    ended = await commands.run("top", "--once")
    assert ended.code == 0 and ended.rows[3][:4] == ["default", "runs", "main", "n"]
    assert (await commands.run("top", "--once", "--pod", "other")).output.startswith("lamina top: 0 shares by used")
    assert "Tesla T4" in (await commands.run("top", "--once", "--gpus", "--node", "n")).output


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
