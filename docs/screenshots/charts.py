"""Pictures of charts: where policies leave GPUs unused, the page of `lamina verify`, and that of a benchmark."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "examples/simulation/cluster.yaml"
POLICIES = ("binpack", "spread", "packing")


def simulation(picture: Path) -> None:
    """The chart of `lamina simulate` for the example of a cluster."""
    policies = [word for policy in POLICIES for word in ("--policy", policy)]
    _lamina("simulate", "--nodes", CLUSTER, "--pods", CLUSTER, *policies, "--picture", str(picture))


def verification(driver: "Chrome", page: Path, picture: Path) -> None:
    """The page of `lamina verify` on a simulated GPU, which is written to `page`."""
    _lamina("verify", "--quick", "--simulate", "T4", "--html", str(page))
    driver.get(page.as_uri())
    driver.save_screenshot(str(picture))


def benchmark(driver: "Chrome", page: Path, picture: Path) -> None:
    """The page of the benchmark of the agent, which is written to `page`. A floor that breaks is shown too."""
    subprocess.run([sys.executable, "-m", "bench.agent", "--html", str(page)], cwd=ROOT, check=False)
    driver.get(page.as_uri())
    driver.save_screenshot(str(picture))


def _lamina(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "lamina", *arguments], cwd=ROOT, check=True)
