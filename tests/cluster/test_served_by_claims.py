"""kube-scheduler serves a pod by a ResourceClaim where a node has no tickets, and the controller grants it nothing.

Needs KUBE_BIN_DIR with kube-apiserver, kube-scheduler and etcd of Kubernetes 1.36 or later, and no rights.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.control_plane import ControlPlane, NoPrograms, control_plane, programs
from lamina.configuration import DEFAULT
from lamina.core.objects import read_grant
from lamina.dra.names import DRIVER, device_classes
from lamina.ports.kube import DEVICE_CLASSES, GRANTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kube, Object
from tests.cluster.deciding import all_placed, deciding, prepare
from tests.worlds.objects import admitted_pod

GATE = "DRAExtendedResource"
NODE = "node-0"
DEVICES = [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}]


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """With a device on the node, and NVIDIA's class for it."""
    try:
        programs()
    except NoPrograms as error:
        pytest.skip(str(error))
    async with control_plane(tmp_path, gates=[GATE]) as found:
        if found.version < (1, 36):
            pytest.skip("kube-scheduler before 1.36 makes no such claims, or by rules that have changed since")
        await prepare(found.kube)
        await found.kube.create(DEVICE_CLASSES, device_classes(DRIVER)[0])
        pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": DEVICES}
        await found.kube.create(RESOURCE_SLICES, {"metadata": {"name": NODE}, "spec": spec})
        yield found


async def scheduled(kube: Kube) -> Object:
    """A pod with one GPU, once it has a node."""
    pod = admitted_pod("p", gpu=1)
    pod["spec"] |= {"schedulerName": DEFAULT.schedulers.assigned}
    await kube.create(PODS, pod)
    await all_placed(kube, ["p"])
    return await kube.get(PODS, "p", namespace="default")


async def test_a_pod_gets_no_grant_where_a_claim_serves_it(plane: ControlPlane) -> None:
    async with deciding(plane, {NODE: 0}):
        pod = await scheduled(plane.kube)
    [claim] = (await plane.kube.list(RESOURCE_CLAIMS)).items
    assert pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == claim["metadata"]["name"]
    assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert (await plane.kube.list(GRANTS)).items == []


async def test_a_pod_gets_a_grant_and_no_claim_where_the_node_has_tickets(plane: ControlPlane) -> None:
    async with deciding(plane, {NODE: 10}):
        pod = await scheduled(plane.kube)
    assert "extendedResourceClaimStatus" not in pod["status"]
    assert (await plane.kube.list(RESOURCE_CLAIMS)).items == []
    [grant] = (await plane.kube.list(GRANTS)).items
    assert read_grant(grant).pod_uid == pod["metadata"]["uid"]
