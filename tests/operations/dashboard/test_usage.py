"""What containers use: from pages of metrics to the shares of the document."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from lamina.errors import BadInput
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    GpuCard,
    GpuPart,
    NodeCard,
    PodCard,
    ShareCard,
)
from lamina.operations.dashboard.usage import with_usage
from lamina.operations.dashboard.usage_pages import EVERY_S, UsagePages
from lamina.ports.clock import FakeClock
from lamina.ports.listener import Address, listening
from lamina.report.cluster_use import ClusterUse, GpuLoad, ShareFigures
from tests.operations.dashboard.pages import gpu, node
from tests.waiting import until

MIB = 2**20


def page(gpu: str = "GPU-0", pod: str = "p", used_mib: int = 100) -> str:
    labels = f'node="n",namespace="team",pod="{pod}",container="main",gpu="{gpu}"'
    return f"""# HELP lamina_container_memory_used_bytes Memory that the container uses, by kind of allocation.
# TYPE lamina_container_memory_used_bytes gauge
lamina_container_memory_used_bytes{{{labels},kind="data"}} {used_mib * MIB}
lamina_container_memory_used_bytes{{{labels},kind="context"}} {50 * MIB}
# TYPE lamina_container_memory_peak_bytes gauge
lamina_container_memory_peak_bytes{{{labels}}} {900 * MIB}
# TYPE lamina_container_utilization_percent gauge
lamina_container_utilization_percent{{{labels}}} 41.7
lamina_container_memory_spilled_bytes{{{labels}}} {7 * MIB}
lamina_container_memory_limit_bytes{{{labels}}} {4000 * MIB}
# TYPE lamina_gpu_healthy gauge
lamina_gpu_healthy{{node="n",gpu="{gpu}",index="0",model="T4",reason=""}} 1
"""


def use_in(*pages: str) -> ClusterUse:
    use = ClusterUse()
    for each in pages:
        use.add(None, each)
    return use


def row(gpu: str = "GPU-0", container: str = "main") -> ShareCard:
    return ShareCard(
        container=container,
        node="n",
        gpu=gpu,
        index=0,
        mode="quota",
        memory_mib=4000,
        most_mib=4000,
        physical_mib=4000,
        cores=0,
    )


def document(*rows: ShareCard) -> ClusterDocument:
    parts = (GpuPart(pod="u", name="team/p", memory_mib=4000, cores=0),)
    gpu = GpuCard(
        uuid="GPU-0", index=0, model="T4", memory_mib=16000, capacity_mib=16000, cores_capacity=100, slots=10,
        parts=parts,
    )  # fmt: skip
    pods = {"u": PodCard(namespace="team", name="p", state="running", shares=rows)}
    return ClusterDocument(nodes={"n": NodeCard(name="n", gpus=(gpu,))}, pods=pods)


def test_a_node_without_figures_is_missing_and_not_zero() -> None:
    cards = {name: node(name, gpu(name, 0), gpu(name, 1)) for name in ("a", "b", "c")}
    known = {f"GPU-{name}-{index}": GpuLoad(used_mib=100, node=name) for name, index in (("a", 0), ("a", 1), ("b", 0))}
    clustered = ClusterDocument(cluster=ClusterFigures(memory_mib=1000), nodes=cards)
    figures = with_usage(clustered, ClusterUse(gpus=known)).cluster
    assert (figures.used_mib, figures.nodes_without_use) == (300, 2)
    figures = with_usage(clustered, ClusterUse(gpus={"GPU-a-0": GpuLoad(node="a")})).cluster
    assert (figures.used_mib, figures.nodes_without_use) == (None, 0), "nothing is known, which is no part"


def test_shares_and_parts_have_their_use() -> None:
    shown = with_usage(document(row(), row("GPU-1")), use_in(page()))
    first, other = shown.pods["u"].shares
    assert (first.used_mib, first.peak_mib, first.busy_percent) == (150, 900, 42)
    assert (other.used_mib, other.peak_mib) == (None, None)
    assert shown.nodes["n"].gpus[0].parts[0].used_mib == 150


def test_containers_of_a_pod_on_one_gpu_add_up() -> None:
    use = ClusterUse()
    for container, used_mib in (("main", 100), ("other", 30)):
        use.shares["team", "p", container] = {"GPU-0": ShareFigures(used_mib=used_mib)}
    shown = with_usage(document(row(), row(container="other")), use)
    assert shown.nodes["n"].gpus[0].parts[0].used_mib == 130


def test_the_only_share_of_a_container_may_be_a_mig_device() -> None:
    assert with_usage(document(row()), use_in(page(gpu="MIG-7"))).pods["u"].shares[0].used_mib == 150
    two = with_usage(document(row(), row("GPU-1")), use_in(page(gpu="MIG-7")))
    assert [share.used_mib for share in two.pods["u"].shares] == [None, None]


def test_without_usage_nothing_changes() -> None:
    plain = document(row())
    assert with_usage(plain, ClusterUse()) is plain and with_usage(plain, use_in(page(pod="other"))) == plain


def test_the_board_joins_what_comes_at_different_times() -> None:
    board = Board()
    board.use(use_in(page()), "", 5.0)
    assert not board.current.ready
    board.post(document(row()))
    assert board.current.document.pods["u"].shares[0].used_mib == 150
    board.use(use_in(page(used_mib=500)), "one page is missing", 10.0)
    assert board.current.document.pods["u"].shares[0].used_mib == 550
    assert board.history.of_pod("u") == {"main GPU-0": [(10.0, 550, 42, 4000, 900)]}


@asynccontextmanager
async def pages(texts: dict[str, str]) -> AsyncIterator[str]:
    """An address at which these texts are served, by path."""

    async def answer(request: web.Request) -> web.Response:
        text = texts.get(request.path)
        return web.Response(text=text) if text is not None else web.Response(status=503)

    app = web.Application()
    app.router.add_get("/{name}", answer)
    async with listening("the metrics", app, Address("127.0.0.1", 0)) as address:
        yield f"http://{address}"


async def test_pages_are_read_again_and_again() -> None:
    texts = {"/a": page(), "/b": page(pod="q")}
    board, clock = Board(), FakeClock()
    board.post(document(row()))
    async with pages(texts) as address:
        task = asyncio.ensure_future(UsagePages([f"{address}/a", f"{address}/b"], clock, board).run())
        try:
            await until(lambda: board.current.document.pods["u"].shares[0].used_mib == 150, task=task)
            texts["/a"] = page(used_mib=500)
            await until(
                lambda: board.current.document.pods["u"].shares[0].used_mib == 550,
                task=task, clock=clock, step_s=EVERY_S,
            )  # fmt: skip
            del texts["/a"], texts["/b"]
            await until(lambda: board.current.usage_problem, task=task, clock=clock, step_s=EVERY_S)
        finally:
            task.cancel()
    assert board.current.usage_problem == (
        f"{address}/a cannot be read: it answers with status 503; 1 more page cannot be read either"
    )
    assert board.current.document.pods["u"].shares[0].used_mib is None


@pytest.mark.parametrize("text", ["lamina_container_memory_used_bytes{", "lamina_container_memory_used_bytes{} many"])
async def test_a_page_of_something_else_is_one_sentence(text: str) -> None:
    board = Board()
    async with pages({"/a": text}) as address:
        task = asyncio.ensure_future(UsagePages([f"{address}/a"], FakeClock(), board).run())
        try:
            await until(lambda: "it is not a page of metrics: " in board.current.usage_problem, task=task)
        finally:
            task.cancel()


async def test_an_agent_that_does_not_answer_is_named() -> None:
    board = Board()
    async with pages({}) as address:
        pass
    task = asyncio.ensure_future(UsagePages([f"{address}/a"], FakeClock(), board).run())
    try:
        await until(lambda: board.current.usage_problem.startswith(f"{address}/a cannot be read: "), task=task)
    finally:
        task.cancel()


@pytest.mark.parametrize("address", ["", "localhost:9394", "ftp://host/metrics", "http://", "http://[::1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match=r"^--metrics must be an address such as "):
        UsagePages([address], FakeClock(), Board())


async def test_without_addresses_nothing_is_read() -> None:
    await UsagePages([], FakeClock(), Board()).run()
