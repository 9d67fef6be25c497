"""The view Overview in a browser: capacity, what needs attention, and why pods wait."""

import pytest

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, small

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())


async def test_capacity_is_in_units_by_size(page: Page) -> None:
    figures = ClusterFigures(
        nodes=1, gpus=2000, idle_gpus=1, memory_mib=2 * 1024 * 1024, granted_mib=524_288, cores=200_000,
        granted_cores=50_050, stranded_mib=1000, stranded_gpus=1, running_pods=1234, waiting_pods=2,
    )  # fmt: skip
    page.board.post(ClusterDocument(cluster=figures))
    await page.until("document.querySelector('#figures') !== null")
    memory, compute, stranded, gpus, pods = (" ".join(text.split()) for text in await page.texts("#figures > div"))
    assert memory == "Memory 25 % granted 512 GiB of 2 TiB Used: not known"
    assert compute == "Compute 25 % granted 500.5 of 2,000 GPUs GPU time used: not known"
    assert stranded.startswith("Stranded 0 % of memory 1,000 MiB on 1 GPU")
    assert gpus == "GPUs 2,000 On 1 node 1 idle, 0 unhealthy, 0 cordoned"
    assert pods == "Pods with GPUs 1,234 run 2 wait or are refused"


async def test_nodes_without_figures_are_counted_next_to_what_is_used(page: Page) -> None:
    figures = ClusterFigures(nodes=3, gpus=3, memory_mib=4096, used_mib=1024, nodes_without_use=2)
    page.board.post(ClusterDocument(cluster=figures))
    await page.until("document.querySelector('#figures') !== null")
    (memory, *_) = (" ".join(text.split()) for text in await page.texts("#figures > div"))
    assert memory.endswith("Used: at least 1 GiB Figures of 2 nodes are missing")


async def test_an_empty_cluster_says_so(page: Page) -> None:
    page.board.post(ClusterDocument())
    await page.until("document.querySelector('#waiting') !== null")
    assert await page.texts("#waiting p") == ["None."]
    (memory, *_) = await page.texts("#figures > div")
    assert "none" in memory, "nothing of nothing is no percentage"
    (attention,) = await page.texts("#attention p")
    assert attention.startswith("Nothing: GPUs and nodes are healthy")


async def test_pods_that_wait_have_their_reason_and_ways_out(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('#waiting article') !== null")
    (text,) = await page.texts("#waiting article")
    assert "needs 99999 MiB" in text and "Use less." in text and "team/big" in text
    assert await page.run("document.querySelector('#waiting .names a').hash") == "#/pod/team/big"


async def test_workloads_whose_pods_are_refused_are_not_called_pods(page: Page) -> None:
    refused = {name: PodCard(namespace="team", name=name, state="refused", reason="No.") for name in ("job/a", "b")}
    page.board.post(ClusterDocument(pods=refused))
    await page.until("document.querySelectorAll('#waiting article').length === 2")
    assert sorted(await page.texts("#waiting h3")) == ["1 pod refused", "1 workload whose pods are refused"]
    links = await page.run("[...document.querySelectorAll('#waiting .names a')].map((each) => each.hash).sort()")
    assert links == ["#/pod/team/b", "#/pod/team/job%2Fa"]


async def test_what_needs_attention_leads_to_where_it_is(page: Page) -> None:
    sick = gpu("n", 0, healthy=False, reason="XID 79")
    nodes = {"n": node("n", sick), "gone": node("gone", gpu("gone", 0), ready=False)}
    refused = PodCard(namespace="team", name="web", state="running", refused_memory="Refused at noon.")
    page.board.post(ClusterDocument(nodes=nodes, pods={"u": refused}))
    await page.until("document.querySelectorAll('#attention li').length === 3")
    links = await page.run("[...document.querySelectorAll('#attention a')].map((each) => each.hash)")
    assert links == ["#/node/gone", "#/gpu/GPU-n-0", "#/pod/team/web"]
    (text,) = await page.texts("#attention ul")
    assert "gone is not ready" in text and "unhealthy: XID 79" in text and "Refused at noon." in text


async def test_granted_and_stranded_gpu_over_time(page: Page) -> None:
    page.board.allocation.note(1000.0, ClusterFigures(memory_mib=100, granted_mib=20, cores=100, stranded_mib=10))
    page.board.allocation.lose(2000.0)
    page.board.allocation.note(3000.0, ClusterFigures(memory_mib=100, granted_mib=60, cores=100, stranded_mib=5))
    page.board.post(small())
    await page.until("document.querySelector('#allocation canvas') !== null")
    memory, _, stranded = (text.strip() for text in await page.texts("#allocation li"))
    assert memory == "Memory granted: now 60.0 %, least 20.0 %, most 60.0 %"
    assert stranded == "Memory stranded: now 5.0 %, least 5.0 %, most 10.0 %"
    page.board.allocation.note(4000.0, ClusterFigures(memory_mib=100, granted_mib=90, cores=100))
    page.board.post(small("other"))
    await page.until("document.querySelector('#allocation li').innerText.includes('now 90.0 %')")
    assert await page.run("document.querySelectorAll('#allocation canvas').length") == 1
