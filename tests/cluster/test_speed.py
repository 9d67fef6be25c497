"""How long pods take from `apply` to Running, with a share of a GPU and without. Figures, no bounds.

Set LAMINA_CLUSTER_SPEED to measure.
"""

import json
import os
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import observation
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.processes import Processes
from tests.cluster.queries import PATIENCE_S, delete_pods, other_gpus, pod, situation
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    not os.environ.get("LAMINA_CLUSTER_SPEED"), reason="set LAMINA_CLUSTER_SPEED to measure how fast pods start"
)
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}
ROUNDS = 3
MACHINE = """
driver: "550.54.15"
cuda: "12.4"
seed: {name}
gpus:
- model: V100-PCIE-32GB
  count: 4
"""


@pytest.fixture(scope="module")
def node(cluster: RealCluster) -> Iterator[str]:
    """A node whose four GPUs hold ten shares each, with Lamina."""
    (node, *_) = cluster.nodes
    with other_gpus(cluster, MACHINE):
        processes = Processes(cluster, nodes=[node])
        processes.start()
        yield node.name
        processes.remove()


def seconds(cluster: RealCluster, node: str, count: int, limits: dict[str, Any]) -> float:
    """From `apply` until as many pods run."""
    items = [json.loads(pod(f"speed-{i}", limits=limits, node=node)) for i in range(count)]
    start = time.monotonic()
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def all_run() -> bool:
        phases = cluster.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}").split()
        return phases == ["Running"] * count

    wait_until(all_run, lambda: situation(cluster), 4 * PATIENCE_S)
    taken = time.monotonic() - start
    delete_pods(cluster)
    assert observation.settled(cluster) == []
    return taken


@pytest.mark.parametrize(("count", "rounds"), [(1, ROUNDS), (40, 1)])
def test_from_apply_to_running(cluster: RealCluster, node: str, figures: list[str], count: int, rounds: int) -> None:
    """The two kinds take turns, so that whatever else the machine does meets both."""
    taken = [(seconds(cluster, node, count, SHARE), seconds(cluster, node, count, {})) for _ in range(rounds)]
    shared, plain = (statistics.median(each) for each in zip(*taken, strict=True))
    figures.append(f"apply to Running, {count} pods on one node: {shared:.1f} s with a share, {plain:.1f} s without")
