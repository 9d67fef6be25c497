"""Whatever is killed while pods come and go: no GPU is given away twice, and in the end nothing is left over."""

import os
import random
import time

import pytest

from tests.cluster import seeing
from tests.cluster.asking import pod, running
from tests.cluster.soak import Soak
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage

pytestmark = pytest.mark.usefixtures("without_pods")
PODS = int(os.environ.get("LAMINA_SOAK_PODS", "60"))
SEED = int(os.environ.get("LAMINA_SOAK_SEED") or random.SystemRandom().randrange(1 << 32))


def test_pods_come_and_go_while_everything_is_killed(stage: Stage, lamina: Processes, figures: list[str]) -> None:
    """At the end each node gives all of its GPUs to one pod, so nobody remembers anybody who is gone."""
    print(f"LAMINA_SOAK_SEED={SEED}")
    soak = Soak(stage, lamina, pods=PODS, seed=SEED)
    start = time.monotonic()
    soak.run()
    killed = ", ".join(f"{count} {part}" for part, count in sorted(soak.kills.items()))
    figures.append(
        f"soak {SEED}: {len(soak.pods)} pods in {time.monotonic() - start:.0f} s, {len(soak.ran)} containers ran, "
        f"{soak.looks} looks, killed: {killed or 'nothing'}; {len(soak.violations)} violations"
    )
    assert soak.violations + seeing.settled(stage) == []
    for node in stage.nodes:
        all_gpus = pod(f"all-{node.name}", limits={"nvidia.com/gpu": 2}, node=node.name)
        stage.kubectl("apply", "-f", "-", stdin=all_gpus)
    running(stage, *(f"all-{node.name}" for node in stage.nodes))
