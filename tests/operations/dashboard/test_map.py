"""The view Map in a browser: every GPU as a cell, its address, and the keyboard."""

from urllib.parse import parse_qsl

import pytest

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, NodeCard, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, running

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
CELLS = "[...document.querySelectorAll('.cell')].map((each) => each.ariaLabel)"
TITLES = "[...document.querySelectorAll('.map-group')].map((each) => each.ariaLabel)"


def mixed() -> ClusterDocument:
    """A half full GPU of team, one that is unhealthy, and one on a cordoned node of another model and pool."""
    part = GpuPart(pod="u1", name="team/web", namespace="team", memory_mib=8000, cores=50)
    first = node(
        "a-1", gpu("a-1", 0, part, mode="quota", taken_mib=8000), gpu("a-1", 1, healthy=False, reason="XID 79")
    )
    other = GpuPart(pod="u2", name="lab/job", namespace="lab", memory_mib=4000, cores=10)
    second = NodeCard(
        name="b-2", cordoned=True, pool="large", gpus=(gpu("b-2", 0, other, taken_mib=4000, stranded=True),)
    )
    pods = {"u1": running("web"), "u2": PodCard(namespace="lab", name="job", state="running")}
    nodes = {"a-1": first, "b-2": second}
    return ClusterDocument(cluster=ClusterFigures(nodes=2, gpus=3), nodes=nodes, pods=pods)


async def opened(page: Page, address: str = "map", cells: int = 3) -> list[str]:
    page.board.post(mixed())
    await page.go(address)
    await page.until(f"document.querySelectorAll('.cell').length === {cells}")
    found: list[str] = await page.run(CELLS)
    return found


async def test_cells_say_what_is_granted_and_what_is_wrong(page: Page) -> None:
    assert await opened(page) == [
        "a-1 GPU 0: 7.8 GiB of 15.6 GiB granted; healthy",
        "a-1 GPU 1: idle; Unhealthy: XID 79",
        "b-2 GPU 0: 3.9 GiB of 15.6 GiB granted; Cordoned; What is free is stranded",
    ]
    assert await page.texts("#shown") == ["2 nodes, 3 GPUs"]
    signs = await page.run("[...document.querySelectorAll('.cell')].map((each) => each.dataset.kind ?? '')")
    assert signs == ["", "bad", "cordoned"]


async def test_cells_are_to_scale_in_the_color_of_who_holds_them(page: Page) -> None:
    await opened(page)
    drawn = await page.run("[...document.querySelectorAll('.cell')].map((each) => each.style.backgroundImage)")
    assert "0.0% 50.0%" in " ".join(drawn[0].split()).replace("0% 50%", "0.0% 50.0%")
    colors = [text.split("var(--color-")[1][0] for text in (drawn[0], drawn[2])]
    assert len(set(colors)) == 2 and "--color-" not in drawn[1]
    legend = await page.texts(".legend li")
    assert [text.strip() for text in legend[:2]] == ["lab", "team"]


@pytest.mark.parametrize(
    ("query", "cells"),
    [
        ("q=web", ["a-1 GPU 0"]), ("q=A-1", ["a-1 GPU 0", "a-1 GPU 1"]), ("q=GPU-b-2-0", ["b-2 GPU 0"]), ("q=none", []),
        ("state=unhealthy", ["a-1 GPU 1"]), ("state=cordoned", ["b-2 GPU 0"]), ("state=stranded", ["b-2 GPU 0"]),
        ("state=idle", ["a-1 GPU 1"]), ("state=nonsense", ["a-1 GPU 0", "a-1 GPU 1", "b-2 GPU 0"]),
        ("state=unhealthy&q=b", []),
    ],
)  # fmt: skip
async def test_the_address_says_what_is_shown(page: Page, query: str, cells: list[str]) -> None:
    shown = await opened(page, f"map?{query}", len(cells))
    assert [each.split(":")[0] for each in shown] == cells
    given = dict(parse_qsl(query))
    assert await page.run("document.querySelector('#words').value") == given.get("q", "")
    chosen = given.get("state", "")
    assert await page.run("document.querySelector('#state').value") == ("" if chosen == "nonsense" else chosen)
    if not cells:
        assert await page.texts(".map > p") == ["No GPU matches."]


@pytest.mark.parametrize(
    ("by", "titles"),
    [
        ("", ["All nodes"]), ("pool", ["large", "no node pool"]), ("model", ["Tesla T4"]),
        ("namespace", ["(idle)", "lab", "team"]), ("nonsense", ["All nodes"]),
    ],
)  # fmt: skip
async def test_groups(page: Page, by: str, titles: list[str]) -> None:
    await opened(page, f"map?group={by}")
    assert await page.run(TITLES) == titles


async def test_what_is_chosen_is_in_the_address_and_back_undoes_it(page: Page) -> None:
    await opened(page)
    await page.type("#words", "web")
    await page.until("location.hash === '#/map?q=web' && document.querySelectorAll('.cell').length === 1")
    await page.choose("#group", "model")
    await page.choose("#color", "workload")
    await page.until("location.hash === '#/map?q=web&group=model&color=workload'")
    await page.back()
    await page.until(
        "location.hash === '#/map?q=web&group=model' && document.querySelector('#color').value === 'namespace'"
    )
    await page.back()
    await page.until("location.hash === '#/map?q=web' && document.querySelector('#group').value === ''")
    await page.back()
    await page.until("document.querySelector('#words').value === '' && document.querySelectorAll('.cell').length === 3")
    assert await page.run("location.hash") == "#/map", "a word is one step, not one of each letter"


async def test_the_map_is_one_stop_of_tab_and_arrows_move_in_it(page: Page) -> None:
    await opened(page)
    stops = "[...document.querySelectorAll('.map [tabindex=\"0\"]')].map((each) => each.ariaLabel)"
    assert await page.run(stops) == ["Node a-1"]
    await page.run("document.querySelector('.map [tabindex=\"0\"]').focus()")
    for key, name in (
        ("\ue014", "a-1 GPU 0"), ("\ue014", "a-1 GPU 1"), ("\ue014", "Node b-2"), ("\ue012", "a-1 GPU 1"),
        ("\ue010", "b-2 GPU 0"), ("\ue014", "b-2 GPU 0"), ("\ue011", "Node a-1"),
    ):  # fmt: skip
        await page.keys(key)
        assert (await page.run("document.activeElement.ariaLabel")).startswith(name)
        assert len(await page.run(stops)) == 1
    await page.keys("\ue014", "\ue007")  # Right, Enter
    await page.until("location.hash === '#/gpu/GPU-a-1-0'")


async def test_a_cell_tells_who_holds_it_when_it_is_looked_at(page: Page) -> None:
    await opened(page)
    await page.run("document.querySelector('.cell').focus()")
    await page.until("document.querySelector('.tip') !== null")
    (text,) = await page.texts(".tip")
    assert "a-1 GPU 0" in text and "team/web" in text and "7.8 GiB, 50 % compute" in text and "Used: not known" in text
    await page.run("document.querySelector('#words').focus()")
    await page.until("document.querySelector('.tip') === null")


async def test_the_focus_stays_while_the_cluster_changes(page: Page) -> None:
    await opened(page)
    await page.run("document.querySelectorAll('.cell')[1].focus()")
    before = mixed()
    cards = {
        **before.nodes,
        "a-0": node("a-0", gpu("a-0", 0)),
        "a-1": node("a-1", *before.nodes["a-1"].gpus, driver="new"),
    }
    page.board.post(ClusterDocument(cluster=before.cluster, nodes=cards, pods=before.pods))
    await page.until("document.querySelectorAll('.cell').length === 4")
    assert (await page.run("document.activeElement.ariaLabel")).startswith("a-1 GPU 1")


async def test_no_nodes_is_said(page: Page) -> None:
    page.board.post(ClusterDocument())
    await page.go("map")
    await page.until("document.querySelector('.map > p') !== null")
    assert await page.texts(".map > p") == ["No node with GPUs has reported yet."]
