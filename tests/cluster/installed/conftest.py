"""Lamina installed by its document, for all tests of this folder, beside NVIDIA's operator.

node1 is labelled as the document says. node2 has the labels of the operator, whose device plugin serves it at first.
"""

from collections.abc import Iterator

import pytest

from tests.cluster.asking import delete_pods
from tests.cluster.installed import nvidias_operator
from tests.cluster.installed.asking import serves, whole
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage


@pytest.fixture(scope="package")
def lamina(stage: Stage) -> Iterator[Installation]:
    installation = Installation(stage)
    with stage.steps("Lamina's image, and loading it"):
        installation.load_images()
    installation.documented("kubectl label node NODE gpu=on", "node1")
    stage.kubectl("label", "node", "node2", "nvidia.com/gpu.present=true", f"{nvidias_operator.DEPLOYED}=true")
    nvidias_operator.install(stage, installation.image)
    with stage.steps("installing Lamina, from apply to ready"):
        installation.documented("lamina install --set image")
        whole(stage)
        serves(stage, "node1")
    yield installation
    delete_pods(stage)
    try:
        installation.shell("lamina uninstall --force --no-kubelets", timeout=400)
    except Unavailable as left:
        assert "Left: " in str(left), "only amounts that kubelets still count may be left"
    nvidias_operator.uninstall(stage)
    stage.kubectl("label", "nodes", "--all", "gpu-", "nvidia.com/gpu.present-", f"{nvidias_operator.DEPLOYED}-")


@pytest.fixture(scope="package")
def both(stage: Stage, lamina: Installation) -> Installation:
    """With an agent on node2 as well."""
    lamina.documented("kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false", "node2")
    nvidias_operator.left(stage)
    whole(stage)
    serves(stage, "node2")
    return lamina


@pytest.fixture(autouse=True)
def _without_pods(stage: Stage) -> Iterator[None]:
    yield
    delete_pods(stage)
