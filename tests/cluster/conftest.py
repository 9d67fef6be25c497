"""A cluster for the tests of this folder. It takes root and a minute, so it comes only where it is asked for."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from lamina_lab import simgpu
from tests.cluster import observation
from tests.cluster.components import binaries, leftovers
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.components.steps import Steps
from tests.cluster.queries import delete_pods

SWITCH = "LAMINA_CLUSTER_TEST"
STEPS = Steps(say=False)
FIGURES: list[str] = []
FOR_REPORT = "cluster under test"
"""Where a process that runs tests keeps steps and figures for the one that reports."""
MACHINE = """
driver: "550.54.15"
cuda: "12.4"
seed: {name}
gpus:
- model: V100-PCIE-32GB
  count: 2
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where KUBE_BIN_DIR lacks something, say so before any process that runs tests starts."""
    if not os.environ.get(SWITCH) or hasattr(session.config, "workerinput"):
        return
    try:
        binaries.given()
    except Unavailable as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def steps() -> Steps:
    """Where clusters note how long they took. Tests that start one use this, and are skipped without the switch."""
    if not os.environ.get(SWITCH):
        pytest.skip(f"a real cluster takes root and minutes; `make cluster-test` runs these tests, by {SWITCH}=1")
    return STEPS


@pytest.fixture(scope="session")
def cluster(steps: Steps) -> Iterator[RealCluster]:
    """Two nodes with two V100 of 32 GB each, without Lamina. Nothing may be left of it afterwards."""
    before = leftovers.machine()
    made = RealCluster([simgpu.parse(MACHINE.format(name=name)) for name in ("node1", "node2")], steps)
    yield made
    keep = bool(os.environ.get("LAMINA_KEEP_LOGS"))
    made.close(keep=keep)
    left = leftovers.of_cluster(made.folder)
    assert left == [str(made.folder)] * keep, "the cluster under test left something behind"
    assert leftovers.machine() == before, "the cluster under test changed the machine"


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    """Lamina on the cluster, its parts as programs of the sandboxes."""
    processes = Processes(cluster)
    with cluster.steps("Lamina"):
        processes.start()
    yield processes
    processes.remove()


@pytest.fixture
def node(cluster: RealCluster) -> RealNode:
    """One on which pods are to run."""
    return cluster.nodes[0]


@pytest.fixture
def without_pods(cluster: RealCluster, lamina: Processes) -> Iterator[None]:
    """Tests that leave their pods behind ask for this."""
    yield
    delete_pods(cluster)


@pytest.fixture(autouse=True)
def _invariants(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test on the cluster, and after what it cleans up, all who know of shares tell the same story."""
    cluster = request.getfixturevalue("cluster") if "cluster" in request.fixturenames else None
    yield
    if cluster is not None:
        assert observation.settled(cluster) == []


@pytest.fixture(scope="session")
def figures() -> list[str]:
    """Lines for the end of the report."""
    return FIGURES


class ByPart(LoadScopeScheduling):
    """All tests of a folder in this one, or of a file, are on one cluster. With `-n 2`, two clusters share them."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].removeprefix("tests/cluster/").partition("/")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByPart:
    """Which process runs which tests."""
    return ByPart(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what the report says, where another process reports."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[FOR_REPORT] = (STEPS.taken, FIGURES)


def pytest_testnodedown(node: Any) -> None:
    """Take over what a process that ran tests has for the report."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})  # a process that broke has none
    taken, figures = output.get(FOR_REPORT, ((), ()))
    STEPS.taken.extend(taken)
    FIGURES.extend(figures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long each step of bringing up and taking down took."""
    if STEPS.taken:
        terminalreporter.section("the cluster under test")
        for name, seconds in STEPS.taken:
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
    for line in FIGURES:
        terminalreporter.write_line(line)
