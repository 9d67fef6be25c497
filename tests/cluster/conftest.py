"""One cluster for all tests of this folder. It takes root and a minute, so it comes only where it is asked for."""

import os
from collections.abc import Iterator

import pytest

from lamina import simgpu
from tests.cluster import seeing
from tests.cluster.asking import delete_pods
from tests.cluster.stage import leftovers
from tests.cluster.stage.node import Node
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage
from tests.cluster.stage.steps import Steps

SWITCH = "LAMINA_CLUSTER_TEST"
STEPS = Steps(say=False)
FIGURES: list[str] = []
MACHINE = """
driver: "550.54.15"
cuda: "12.4"
seed: {name}
gpus:
- model: V100-PCIE-32GB
  count: 2
"""


@pytest.fixture(scope="session")
def steps() -> Steps:
    """Where stages note how long they took. Whoever brings one up asks for this, and is skipped without the switch."""
    if not os.environ.get(SWITCH):
        pytest.skip(f"a real cluster takes root and minutes; `make cluster-test` runs these tests, by {SWITCH}=1")
    return STEPS


@pytest.fixture(scope="session")
def stage(steps: Steps) -> Iterator[Stage]:
    """Two nodes with two V100 of 32 GB each, without Lamina. Nothing may be left of it afterwards."""
    before = leftovers.machine()
    made = Stage([simgpu.parse(MACHINE.format(name=name)) for name in ("node1", "node2")], steps)
    yield made
    keep = bool(os.environ.get("LAMINA_KEEP_LOGS"))
    made.close(keep=keep)
    left = leftovers.of_stage(made.folder)
    assert left == [str(made.folder)] * keep, "the cluster under test left something behind"
    assert leftovers.machine() == before, "the cluster under test changed the machine"


@pytest.fixture(scope="module")
def lamina(stage: Stage) -> Iterator[Processes]:
    """Lamina on the stage, its parts as programs of the rooms."""
    processes = Processes(stage)
    with stage.steps("Lamina"):
        processes.start()
    yield processes
    processes.remove()


@pytest.fixture
def node(stage: Stage) -> Node:
    """One on which pods are to run."""
    return stage.nodes[0]


@pytest.fixture
def without_pods(stage: Stage, lamina: Processes) -> Iterator[None]:
    """Tests that leave their pods behind ask for this."""
    yield
    delete_pods(stage)


@pytest.fixture(autouse=True)
def _truth(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test on the stage, and after what it cleans up, all who know of shares tell the same story."""
    stage = request.getfixturevalue("stage") if "stage" in request.fixturenames else None
    yield
    if stage is not None:
        assert seeing.settled(stage) == []


@pytest.fixture(scope="session")
def figures() -> list[str]:
    """Lines for the end of the report."""
    return FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long each step of bringing up and taking down took."""
    if STEPS.taken:
        terminalreporter.section("the cluster under test")
        for name, seconds in STEPS.taken:
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
    for line in FIGURES:
        terminalreporter.write_line(line)
