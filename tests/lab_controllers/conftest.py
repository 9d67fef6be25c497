"""A cluster with controllers and a pretended kubelet, for the tests of this folder."""

from collections.abc import AsyncIterator

import pytest

from lamina_lab.controllers.run import run
from tests.lab_controllers.cluster import Kubelet, LabInProcess
from tests.worlds.clocks import settle


@pytest.fixture
async def cluster() -> AsyncIterator[LabInProcess]:
    made = LabInProcess()
    await made.add_node("n1")
    made.run(run(made.kube, made.clock, node_grace=1e9))
    await settle()
    yield made
    await made.stop()


@pytest.fixture
async def kubelet(cluster: LabInProcess) -> Kubelet:
    made = Kubelet(cluster.api)
    cluster.run(made.run())
    await settle()
    return made
