"""Every view for everyone: names for screen readers, contrast, any width, and what axe-core checks."""

import asyncio
import itertools
import re
from collections.abc import Callable
from importlib import resources

import pytest

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, PodCard
from tests import axe_core
from tests.browser import missing_browser, use_scheme
from tests.operations.dashboard.pages import Page, gpu, node, running, small

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
VIEWS = ("overview", "map?group=namespace&q=w", "node/n", "gpu/GPU-n-0", "pods", "pod/team/web", "what-if")
SCHEMES = ("light", "dark")
WIDTHS = (320, 390, 1280, 2560)
LONG = "x" * 253
"""Of 253 characters, as Kubernetes allows."""
SCRIPTS = "\u05e9\u05dc\u05d5\u05dd-\u4f60\u597d-\u0645\u0631\u062d\u0628\u0627-\U0001f600-e\u0301"
"""Of tenants on systems that allow more than Kubernetes, from right to left too."""


def test_all_views_are_here() -> None:
    """Those of the page, by the first word of the address."""
    shell = resources.files("lamina.operations.dashboard").joinpath("page/shell.js").read_text()
    assert set(re.findall(r'^  "?([a-z-]+)"?: \{ view: ', shell, re.MULTILINE)) == {
        re.split("[/?]", view)[0] for view in VIEWS
    }


async def opened(page: Page, view: str, document: ClusterDocument | None = None) -> None:
    page.board.allocation.note(1000.0, ClusterFigures(memory_mib=100, granted_mib=20, cores=100, stranded_mib=10))
    page.board.post(document or small())
    await page.go(view)
    await page.until(
        "document.querySelector('main h1') !== null && document.querySelector('main > :nth-child(3)') !== null"
    )


CONTRAST: Callable[[str], str] = """(() => {{
  const linear = (part) => (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = (text) => {{
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  }};
  const ground = (each) => {{
    const color = getComputedStyle(each).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" && each.parentElement ? ground(each.parentElement) : color;
  }};
  return [...document.querySelectorAll("{}")].filter((each) => each.innerText && each.offsetParent).map((each) => {{
    const [one, other] = [light(getComputedStyle(each).color), light(ground(each))].sort((a, b) => b - a);
    return [each.innerText, (one + 0.05) / (other + 0.05)];
  }}).filter(([, ratio]) => ratio < 4.5);
}})()""".format


@pytest.mark.parametrize("view", VIEWS)
async def test_texts_have_enough_contrast(page: Page, view: str) -> None:
    """4.5:1, as WCAG 2 AA asks, on every color that a share can have."""
    await opened(page, view)
    for scheme in SCHEMES:
        await asyncio.to_thread(use_scheme, page.driver, scheme)
        assert await page.run(CONTRAST("h1, h2, h3, h4, p, dt, dd, td, th, li, button, span, label, output, a")) == []
        for color in range(8) if view == "node/n" else ():
            script = "document.querySelector('a.share').style.setProperty('--color', `var(--color-${arguments[0]})`)"
            await page.run(script, color)
            assert await page.run(CONTRAST("a.share")) == [], color


@pytest.mark.parametrize("view", VIEWS)
async def test_headings_buttons_and_regions_have_names(page: Page, view: str) -> None:
    await opened(page, view)
    assert await page.run("document.querySelector('#status').getAttribute('role')") == "status"
    assert await page.run("document.documentElement.lang") == "en"
    levels = await page.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].filter((each) => each.offsetParent).map((e) => +e.tagName[1])"
    )
    assert levels.count(1) == 1 and all(after - before <= 1 for before, after in itertools.pairwise(levels))
    tree = await asyncio.to_thread(page.driver.execute_cdp_cmd, "Accessibility.getFullAXTree", {})
    named = ("button", "heading", "region", "searchbox", "group", "link", "combobox", "spinbutton")
    nameless = [
        each["role"]["value"]
        for each in tree["nodes"]
        if not each["ignored"] and each["role"]["value"] in named and not each.get("name", {}).get("value")
    ]
    assert nameless == []


@pytest.mark.parametrize("view", VIEWS)
async def test_no_width_cuts_anything_off(page: Page, view: str) -> None:
    """Not even with names that are long and cannot be broken, or in any script."""
    nodes, pods = small().nodes, dict(small().pods)
    for uid, name in (("u3", LONG), ("u4", SCRIPTS)):
        part = GpuPart(pod=uid, name=f"{name}/{name}", namespace=name, memory_mib=4000, cores=50)
        nodes = {**nodes, name: node(name, gpu(name, 0, part), gpu(name, 1, healthy=False, reason=name))}
        pods |= {uid: running(name), f"{uid} waits": PodCard(namespace=name, name=name, state="pending", reason=name)}
    try:
        figures = ClusterFigures(nodes=3, gpus=6)
        await opened(
            page, view.replace("node/n", f"node/{LONG}"), ClusterDocument(cluster=figures, nodes=nodes, pods=pods)
        )
        for width in WIDTHS:
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await asyncio.to_thread(page.driver.execute_cdp_cmd, "Emulation.setDeviceMetricsOverride", metrics)
            await page.until("window.innerWidth === arguments[0]", width)
            assert await page.run("document.documentElement.scrollWidth") <= width, width
    finally:
        await asyncio.to_thread(page.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.skipif(axe_core.script() is None, reason="no axe-core: install npm to fetch one")
@pytest.mark.parametrize("view", VIEWS)
async def test_axe_finds_nothing(page: Page, view: str) -> None:
    """The rules of WCAG 2.1 AA that a program can check."""
    await opened(page, view)
    await passes_axe(page)


@pytest.mark.skipif(axe_core.script() is None, reason="no axe-core: install npm to fetch one")
@pytest.mark.parametrize("view", VIEWS)
async def test_axe_finds_nothing_where_there_is_nothing_and_no_cluster(page: Page, view: str) -> None:
    page.board.post(ClusterDocument(cluster=ClusterFigures(configuration="it is wrong")))
    page.board.lose("it does not answer")
    await page.go(view)
    await page.status("The command cannot follow the cluster")
    await passes_axe(page)


async def passes_axe(page: Page) -> None:
    await asyncio.to_thread(page.driver.execute_script, axe_core.script())
    for scheme in SCHEMES:
        await asyncio.to_thread(use_scheme, page.driver, scheme)
        assert await asyncio.to_thread(page.driver.execute_async_script, AXE) == [], scheme


AXE = """
const done = arguments[arguments.length - 1];
const only = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
axe.run(document, only).then(({ violations }) => done(
  violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])])));
"""
