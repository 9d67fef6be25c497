"""How long pods take from `apply` to Running, with a share of a GPU and, beside it, without. Figures, no demands."""

import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lamina import simgpu
from tests.cluster import seeing
from tests.cluster.asking import PATIENCE_S, delete_pods, pod, until
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage
from tests.cluster.stage.steps import Steps

SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}
ROUNDS = 3
MACHINE = """
driver: "550.54.15"
cuda: "12.4"
seed: speed
gpus:
- model: V100-PCIE-32GB
  count: 4
"""


@pytest.fixture(scope="module")
def wide(steps: Steps) -> Iterator[Stage]:
    """A node whose four GPUs hold ten shares each, with Lamina."""
    made = Stage([simgpu.parse(MACHINE)], steps)
    try:
        Processes(made).start()
        yield made
    finally:
        made.close()


def seconds(stage: Stage, count: int, limits: dict[str, Any]) -> float:
    """From `apply` until as many pods run."""
    items = [json.loads(pod(f"speed-{i}", limits=limits)) for i in range(count)]
    start = time.monotonic()
    stage.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def all_run() -> bool:
        phases = stage.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}").split()
        return phases == ["Running"] * count

    until(all_run, lambda: stage.kubectl("get", "pods"), patience_s=4 * PATIENCE_S)
    taken = time.monotonic() - start
    delete_pods(stage)
    assert seeing.settled(stage) == []
    return taken


@pytest.mark.parametrize(("count", "rounds"), [(1, ROUNDS), (40, 1)])
def test_from_apply_to_running(wide: Stage, figures: list[str], count: int, rounds: int) -> None:
    """The two kinds take turns, so that whatever else the machine does meets both."""
    taken = [(seconds(wide, count, SHARE), seconds(wide, count, {})) for _ in range(rounds)]
    shared, plain = (statistics.median(each) for each in zip(*taken, strict=True))
    figures.append(f"apply to Running, {count} pods on one node: {shared:.1f} s with a share, {plain:.1f} s without")
