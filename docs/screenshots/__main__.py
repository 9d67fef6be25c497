"""Start labs, put pods on them, and save pictures of commands, of the dashboard and of charts in docs/images."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import yaml

from docs.screenshots import charts, dashboard, terminal
from docs.screenshots.labs import lab
from lamina.ports.kube import DEPLOYMENTS, PODS
from lamina.ports.kube.client import connect
from tests.browser import browser, missing_browser
from tests.waiting import until

IMAGES = Path(__file__).resolve().parents[1] / "images"
MANIFEST = Path(__file__).with_name("workloads.yaml")
PODS_IN_ALL = 9
TOP = {"top": ("down", "down"), "top-gpu": ("g", "down", "enter")}
"""The pictures of `lamina top`, with the keys that lead there."""


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


def save_commands(kubeconfig: Path) -> None:
    """The pictures of commands in a terminal, once the agents have measured what pods use."""
    own = {"KUBECONFIG": str(kubeconfig)}
    for name, keys in TOP.items():
        lines = asyncio.run(terminal.top(kubeconfig, keys))
        terminal.save_lines(IMAGES / "terminal" / f"{name}.svg", "lamina top", lines, terminal.TOP_SIZE[0])
    first = (["gpus"], ["pods"], ["why", "deploy/chat"])
    outputs = [terminal.run(*words, environment=own) for words in first]
    terminal.save(IMAGES / "terminal" / "questions.svg", "Which GPU, what is free, and why a pod waits", *outputs)
    fits = terminal.run("fits", "-f", str(MANIFEST.relative_to(charts.ROOT)), environment=own)
    terminal.save(IMAGES / "terminal" / "fits.svg", "What would fit", fits)


def commands() -> None:
    """Pictures of commands in a lab of two nodes with two GPUs."""
    with lab(nodes=2, gpus=2) as running:
        asyncio.run(fill(running.kubeconfig))
        save_commands(running.kubeconfig)


def pictures_of_charts() -> None:
    """Pictures of charts that commands and benchmarks make."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        charts.simulation(IMAGES / "charts" / "simulation.svg")
        with browser(width=1280, height=1000) as driver:
            charts.verification(driver, Path(folder) / "verify.html", IMAGES / "charts" / "verify.png")
        with browser(width=1000, height=700) as driver:
            charts.benchmark(driver, Path(folder) / "benchmark.html", IMAGES / "charts" / "benchmark.png")


PARTS = {"commands": commands, "dashboard": lambda: dashboard.save(IMAGES), "charts": pictures_of_charts}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.screenshots", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to take: {', '.join(PARTS)} (default: all)")
    parts = parser.parse_args().parts or list(PARTS)
    if unknown := sorted(set(parts) - PARTS.keys()):
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    if lacking := missing_browser():
        sys.exit(lacking)
    for part in parts:
        PARTS[part]()


main()
