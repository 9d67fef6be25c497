"""A cluster with controllers and a pretended kubelet, for the tests of this folder."""

from collections.abc import AsyncIterator

import pytest

from lamina_lab.controllers.run import run
from tests.lab_controllers.cluster import Cluster, Kubelet
from tests.worlds.clocks import settle


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    await made.add_node("n1")
    made.run(run(made.kube, made.clock, node_grace=1e9))
    await settle()
    yield made
    await made.stop()


@pytest.fixture
async def kubelet(cluster: Cluster) -> Kubelet:
    made = Kubelet(cluster.api)
    cluster.run(made.run())
    await settle()
    return made
