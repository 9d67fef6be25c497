"""Start a lab, put pods on it, and save pictures of its dashboard, of commands and of charts in docs/images."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from docs.screenshots import charts, terminal
from lamina.ports.kube import DEPLOYMENTS, PODS
from lamina.ports.kube.client import connect
from tests.browser import browser, missing_browser, use_scheme
from tests.waiting import until, wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

IMAGES = Path(__file__).resolve().parents[1] / "images"
MANIFEST = Path(__file__).with_name("workloads.yaml")
PODS_IN_ALL, PODS_PENDING = 9, 2
READINGS = 20
"""How many readings the charts have, one each 5 seconds."""


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[Path]:
    """The kubeconfig of a lab with two nodes of two GPUs."""
    environment = os.environ | {"LAMINA_LABS": str(folder)}
    lamina = [sys.executable, "-m", "lamina"]
    subprocess.run([*lamina, "lab", "up", "--nodes", "2", "--name", "shot"], env=environment, check=True)
    try:
        yield folder / "shot" / "kubeconfig"
    finally:
        subprocess.run([*lamina, "lab", "down", "--name", "shot"], env=environment, check=True)


async def fill(kubeconfig: Path) -> None:
    """Create the pods, cordon a GPU, and wait until each pod runs or has been refused by the scheduler."""
    kube = await connect(kubeconfig)
    try:
        for obj in yaml.safe_load_all(MANIFEST.read_text()):
            await kube.create(DEPLOYMENTS if obj["kind"] == "Deployment" else PODS, obj, namespace="default")

        async def settled() -> bool:
            pods = (await kube.list(PODS, namespace="default")).items
            phases = [pod["status"].get("phase") == "Running" or pod["status"].get("conditions") for pod in pods]
            return len(pods) == PODS_IN_ALL and all(phases)

        await until(settled)
    finally:
        await kube.close()


@contextlib.contextmanager
def dashboard(kubeconfig: Path) -> Iterator[str]:
    """The address of a dashboard."""
    environment = os.environ | {"LAMINA_LABS": str(kubeconfig.parents[1])}
    command = [sys.executable, "-m", "lamina", "lab", "dashboard", "--name", "shot"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def save_commands(kubeconfig: Path) -> None:
    """The pictures of commands in a terminal, once the agents have measured what pods use."""
    own = {"KUBECONFIG": str(kubeconfig)}
    running = f"{PODS_IN_ALL - PODS_PENDING} shares"
    terminal.save(IMAGES / "terminal" / "top.svg", "lamina top", terminal.screen("top", until=running, environment=own))
    first = (["gpus"], ["pods"], ["why", "deploy/chat"])
    outputs = [terminal.run(*words, environment=own) for words in first]
    terminal.save(IMAGES / "terminal" / "questions.svg", "Which GPU, what is free, and why a pod waits", *outputs)
    fits = terminal.run("fits", "-f", str(MANIFEST.relative_to(charts.ROOT)), environment=own)
    terminal.save(IMAGES / "terminal" / "fits.svg", "What would fit", fits)


def save(driver: "Chrome", address: str) -> None:
    """The pictures of both views."""
    driver.get(address)
    in_use = "return [...document.querySelectorAll('.used')].some((each) => each.offsetWidth > 20)"
    wait_until(lambda: driver.execute_script(in_use))
    _in_both_schemes(driver, "dashboard")
    driver.execute_script("location.hash = '#pods'")
    read = (
        "return document.body.innerText.includes('Out of GPU memory.') && [...document.querySelectorAll('.line')]"
        f".some((each) => each.getAttribute('points').split(' ').length > {READINGS})"
    )
    wait_until(lambda: driver.execute_script(read), within_s=300.0)
    _in_both_schemes(driver, "dashboard-pods")


def _in_both_schemes(driver: "Chrome", name: str) -> None:
    for scheme in ("light", "dark"):
        use_scheme(driver, scheme)
        driver.save_screenshot(str(IMAGES / f"{name}-{scheme}.png"))


def main() -> None:
    if lacking := missing_browser():
        sys.exit(lacking)
    with tempfile.TemporaryDirectory(prefix="lam") as folder, lab(Path(folder)) as kubeconfig:
        asyncio.run(fill(kubeconfig))
        save_commands(kubeconfig)
        with dashboard(kubeconfig) as address, browser(width=1280, height=1750) as driver:
            save(driver, address)
        charts.simulation(IMAGES / "charts" / "simulation.svg")
        with browser(width=1280, height=1000) as driver:
            charts.verification(driver, Path(folder) / "verify.html", IMAGES / "charts" / "verify.png")
        with browser(width=1000, height=700) as driver:
            charts.benchmark(driver, Path(folder) / "benchmark.html", IMAGES / "charts" / "benchmark.png")


main()
