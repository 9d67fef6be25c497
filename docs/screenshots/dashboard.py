"""Pictures of each view of the dashboard, at three widths, in light and dark."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from docs.screenshots.labs import RunningLab, lab
from lamina.ports.kube import DEPLOYMENTS, INVENTORIES, NAMESPACES, PODS
from lamina.ports.kube.client import connect
from tests.browser import browser, use_scheme
from tests.waiting import until, wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

NODES, GPUS = 6, 8
MANIFEST = Path(__file__).with_name("teams.yaml")
SIZES = {390: 844, 1280: 900, 2560: 1440}
SCHEMES = ("light", "dark")
HISTORY_S = 120.0
"""How long use is read before the pictures are taken, so that charts have something to show."""


def save(images: Path) -> None:
    with lab(NODES, GPUS) as running:
        pod, gpu = asyncio.run(fill(running))
        with running.dashboard() as address, browser() as driver:
            driver.get(address)
            time.sleep(HISTORY_S)
            for view, place in views(pod, gpu):
                for width, height in SIZES.items():
                    _show(driver, f"{address}#/{place}", width, height)
                    for scheme in SCHEMES:
                        use_scheme(driver, scheme)
                        driver.save_screenshot(str(images / f"dashboard-{view}-{width}-{scheme}.png"))


async def fill(running: RunningLab) -> tuple[dict[str, Any], str]:
    """Create the pods of the teams. Once all run or wait, returns one that runs and the UUID of a GPU of its node."""
    kube = await connect(running.kubeconfig)
    wanted = list(yaml.safe_load_all(MANIFEST.read_text()))
    in_all = sum(obj["spec"]["replicas"] for obj in wanted)
    try:
        for name in {obj["metadata"]["namespace"] for obj in wanted}:
            await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in wanted:
            await kube.create(DEPLOYMENTS, obj, namespace=obj["metadata"]["namespace"])
        pods: list[dict[str, Any]] = []

        async def settled() -> bool:
            pods[:] = (await kube.list(PODS)).items
            phases = [pod["status"].get("phase") == "Running" or pod["status"].get("conditions") for pod in pods]
            return len(pods) == in_all and all(phases)

        await until(settled)
        pod = next(pod for pod in pods if pod["status"].get("phase") == "Running")
        inventory = await kube.get(INVENTORIES, pod["spec"]["nodeName"])
        return pod, inventory["spec"]["gpus"][0]["uuid"]
    finally:
        await kube.close()


def views(pod: dict[str, Any], gpu: str) -> Iterator[tuple[str, str]]:
    """Each view by its name in pictures, and its address."""
    metadata, node = pod["metadata"], pod["spec"]["nodeName"]
    yield from (("overview", "overview"), ("map", "map"), ("node", f"node/{node}"))
    yield from (("pods", "pods"), ("pod", f"pod/{metadata['namespace']}/{quote(metadata['name'])}"))
    yield from (("gpu", f"gpu/{gpu}"), ("what-if", "what-if"))


def _show(driver: "Chrome", address: str, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get("about:blank")
    driver.get(address)
    wait_until(lambda: driver.execute_script("return document.querySelector('main > :nth-child(3)') !== null"))
    time.sleep(1.0)
