"""Lamina installed by its document, for all tests of this folder, next to NVIDIA's operator.

node1 is labelled as the document says. node2 has the labels of the operator, whose device plugin serves it at first.
"""

from collections.abc import Iterator

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed import nvidias_operator
from tests.cluster.installed.queries import serves, whole
from tests.cluster.queries import delete_pods


@pytest.fixture(scope="package")
def lamina(cluster: RealCluster) -> Iterator[Installation]:
    installation = Installation(cluster)
    with cluster.steps("Lamina's image, and loading it"):
        installation.load_images()
    installation.documented("kubectl label node NODE gpu=on", "node1")
    cluster.kubectl("label", "node", "node2", "nvidia.com/gpu.present=true", f"{nvidias_operator.DEPLOYED}=true")
    nvidias_operator.install(cluster, installation.image)
    with cluster.steps("installing Lamina, from apply to ready"):
        installation.documented("lamina install --set image")
        whole(cluster)
        serves(cluster, "node1")
    yield installation
    delete_pods(cluster)
    try:
        installation.shell("lamina uninstall --yes --force --no-kubelets", timeout=400)
    except Unavailable as left:
        assert "Remaining: " in str(left), "only amounts that kubelets still count may be left"
    nvidias_operator.uninstall(cluster)
    cluster.kubectl("label", "nodes", "--all", "gpu-", "nvidia.com/gpu.present-", f"{nvidias_operator.DEPLOYED}-")


@pytest.fixture(scope="package")
def both(cluster: RealCluster, lamina: Installation) -> Installation:
    """With an agent on node2 as well."""
    lamina.documented("kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false", "node2")
    nvidias_operator.left(cluster)
    whole(cluster)
    serves(cluster, "node2")
    return lamina


@pytest.fixture(autouse=True)
def _without_pods(cluster: RealCluster) -> Iterator[None]:
    yield
    delete_pods(cluster)
