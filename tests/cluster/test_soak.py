"""Whatever breaks while pods come and go: no GPU is given away twice, and in the end nothing is left over."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from lamina import simgpu
from lamina.dialects.config import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE
from tests.cluster import planting, seeing
from tests.cluster.asking import apply, grant, other_gpus, pod, running, until
from tests.cluster.soak import LABEL, Soak
from tests.cluster.stage.node import Node
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage
from tests.cluster.truth import disagreements, over_committed

pytestmark = pytest.mark.usefixtures("without_pods")
PODS = int(os.environ.get("LAMINA_SOAK_PODS", "60"))
SEED = int(os.environ.get("LAMINA_SOAK_SEED") or random.SystemRandom().randrange(1 << 32))
MACHINE = """
driver: "550.54.15"
cuda: "12.4"
seed: {name}
gpus:
- model: A100-PCIE-40GB
  count: 2
"""
CARD_MIB = 40960
REPLICAS = [{"name": "nvidia.com/gpu", "replicas": 4}]
FILES = {
    "whole": {"version": "v1"},
    "turns": {"version": "v1", "sharing": {"timeSlicing": {"resources": REPLICAS}}},
    "renamed": {"version": "v1", "sharing": {"timeSlicing": {"resources": REPLICAS, "renameByDefault": True}}},
    "mps": {"version": "v1", "sharing": {"mps": {"resources": REPLICAS}}},
}
"""NVIDIA's configurations, of which the last node has one or none at a time."""
CONFIG = {"nvidia": {"configs": FILES}, "nodeconfig": [{"name": "node1", "modes": ["quota", "mig"]}]}


@pytest.fixture(scope="module")
def lamina(stage: Stage) -> Iterator[Processes]:
    """Two replicas of the control part, and nodes with A100, of which the first one's may be cut for pods."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONFIG_MAP_NAMESPACE}}
    meta = {"name": CONFIG_MAP, "namespace": CONFIG_MAP_NAMESPACE}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {CONFIG_MAP_KEY: json.dumps(CONFIG)}}
    for each in (namespace, config):
        stage.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    with other_gpus(stage, MACHINE):
        processes = Processes(stage, replicas=2)
        with stage.steps("Lamina with two replicas"):
            processes.start()
        yield processes
        processes.remove()
    stage.kubectl("delete", "configmap", CONFIG_MAP, "-n", CONFIG_MAP_NAMESPACE)


def test_pods_come_and_go_while_everything_breaks(stage: Stage, lamina: Processes, figures: list[str]) -> None:
    """At the end each node gives all of its GPUs to one pod, so nobody remembers anybody who is gone."""
    print(f"LAMINA_SOAK_SEED={SEED}")
    soak = Soak(stage, lamina, pods=PODS, seed=SEED, files=("", "", *FILES))
    start = time.monotonic()
    soak.run()
    figures.append(
        f"soak {SEED}: {len(soak.pods)} pods in {time.monotonic() - start:.0f} s, {len(soak.ran)} containers ran "
        f"({words(Counter(soak.ran.values()))}), {soak.looks} looks, broken: {words(soak.broken)}; "
        f"{len(soak.violations)} violations"
    )
    stage.kubectl("label", "node", stage.nodes[-1].name, f"{LABEL}-")
    assert soak.pods and soak.ran, "nothing was there to be looked at"
    assert soak.violations + seeing.settled(stage) == []
    for node in stage.nodes:
        all_gpus = pod(f"all-{node.name}", limits={"nvidia.com/gpu": 2}, node=node.name)
        stage.kubectl("apply", "-f", "-", stdin=all_gpus)
    running(stage, *(f"all-{node.name}" for node in stage.nodes))


def test_what_is_planted_is_found(stage: Stage, lamina: Processes, node: Node) -> None:
    """Whoever compares must be able to find something: a GPU given away twice, and each kind of leak."""
    stage.kubectl("apply", "-f", "-", stdin=pod("plain", node=node.name))
    apply(stage, "there", node.name)
    running(stage, "plain", "there")
    until(lambda: seeing.settled(stage) == [], lambda: str(seeing.settled(stage)))
    lamina.agents[node.name].kill()
    try:
        (used,) = {share.gpu for each in seeing.look(stage).grants for main in each.containers for share in main.shares}
        (idle,) = {gpu.uuid for gpu in simgpu.read(node.gpus.machine).gpus} - {used}
        grant(stage, "plain", node.name, used, CARD_MIB)
        planting.plant_spec(node, used)
        folder = planting.plant_folder(node)
        with planting.instance(node, idle), planting.daemon(node, idle):
            seen = seeing.look(stage)
    finally:
        stage.kubectl("delete", "pod", "plain", "--grace-period=0", "--force")
        lamina.agents[node.name].start()
        lamina.wait()
    assert seen.ledger is not None and seen.nodes[node.name].holders and seen.nodes[node.name].containers
    assert f"{used} of {node.name}: {CARD_MIB + 3000} MiB are granted, {CARD_MIB} may be, to plain, there" in (
        over_committed(seen)
    )
    leaks = {
        f"nobody owns the CDI spec {planting.NAME}",
        f"nobody owns the container folder {folder}",
        f"nobody made 1g.5gb at 0 of {idle}, which is there",
        f"nobody owns the processes of MPS on {idle}",
    }
    assert {f"{node.name}: {leak}" for leak in leaks} <= {finding.says for finding in disagreements(seen)}


def words(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counted.items())) or "nothing"
