"""`lamina reset` against a fake cluster: what it refuses, what it removes, and what it leaves alone."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml

from lamina.cli.resetting import Resetting, disabled
from lamina.control import crds
from lamina.control.webhook_configuration import webhook_configuration
from lamina.dialects import config
from lamina.errors import BadInput
from lamina.model.gpus import Gpu, Inventory
from lamina.model.grants import Grant, grant_name
from lamina.model.mps import MpsDaemon, MpsState
from lamina.ports.clock import FakeClock
from lamina.ports.kube import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    GRANTS,
    INVENTORIES,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    NotFound,
    Object,
)
from lamina.ports.kube.fake import FakeKube

GPU = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)


async def half_gone() -> FakeKube:
    """A cluster with the webhook, one node whose agent took its GPUs back, and one whose agent is dead."""
    made = FakeKube()
    await crds.apply(made)
    await made.create(MUTATING_WEBHOOKS, webhook_configuration(config.DEFAULT, {"url": "https://x"}, b"ca"))
    await made.create(LEASES, {"metadata": {"name": "node-dead", "namespace": "lamina-system"}})
    await made.create(LEASES, {"metadata": {"name": "another", "namespace": "lamina-system"}})
    for name, gpus in (("gone", ()), ("dead", (GPU,))):
        spec = msgspec.to_builtins(Inventory(node=name, gpus=gpus))
        await made.create(INVENTORIES, {"metadata": {"name": name}, "spec": spec})
    await made.create(NODES, {"metadata": {"name": "gone", "labels": {"own": "kept"}}})
    labels, annotations = {"own": "kept", "nvidia.com/gpu.count": "1"}, {"hami.io/node-nvidia-register": "[]"}
    capacity = {"cpu": "8", "volcano.sh/vgpu-cores": "100", "nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "10"}
    status = {"capacity": capacity, "allocatable": dict(capacity)}
    await made.create(
        NODES, {"metadata": {"name": "dead", "labels": labels, "annotations": annotations}, "status": status}
    )
    return made


@pytest.fixture
async def kube() -> FakeKube:
    return await half_gone()


ASKS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}


async def pod(
    kube: FakeKube,
    name: str,
    *,
    limits: Mapping[str, int] = ASKS,
    granted: bool = False,
    node: str = "dead",
    **status: str,
) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]}
    made = await kube.create(PODS, {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Running"} | status})
    if granted:
        uid = made["metadata"]["uid"]
        grant = Grant(pod=name, pod_uid=uid, node="dead", dialect="hami", containers=())
        meta = {"name": grant_name(name, uid), "namespace": "default"}
        await kube.create(GRANTS, {"metadata": meta, "spec": msgspec.to_builtins(grant)})
    return made


async def run(kube: FakeKube, *, everything: bool = False) -> list[str]:
    clock = FakeClock()
    return [step async for step in Resetting(kube, clock, patience_s=0).run(everything=everything)]


async def test_s2_10_it_refuses_while_pods_use_gpus_and_names_them(kube: FakeKube) -> None:
    await pod(kube, "asking")
    await pod(kube, "holding", limits={}, granted=True)
    await pod(kube, "finished", phase="Succeeded")
    await pod(kube, "without", limits={})
    await pod(kube, "replica", limits={"nvidia.com/gpu.shared": 1})
    await pod(kube, "slice", limits={"nvidia.com/mig-1g.5gb": 1})
    await pod(kube, "of-others", node="theirs")
    with pytest.raises(BadInput, match="4 pods use GPUs: default/asking, default/holding, default/replica, default/sl"):
        await run(kube)
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    assert await kube.get(MUTATING_WEBHOOKS, "lamina.dev")


async def test_s2_10_everything_goes_but_what_is_not_ours(kube: FakeKube) -> None:
    told = await run(kube)
    assert any("dead" in step and "gone" not in step for step in told)
    found = await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    assert config.load(found["data"]["lamina.yaml"], "test").enabled is False
    dead = await kube.get(NODES, "dead")
    assert dead["metadata"]["labels"] == {"own": "kept"}
    assert not dead["metadata"].get("annotations")
    assert dead["status"]["capacity"] == {"cpu": "8", "volcano.sh/vgpu-number": "10"}
    assert dead["status"]["allocatable"] == dead["status"]["capacity"]
    with pytest.raises(NotFound):
        await kube.get(MUTATING_WEBHOOKS, "lamina.dev")
    assert len((await kube.list(CUSTOM_RESOURCE_DEFINITIONS)).items) == 2
    assert len(await run(kube)) == len(told)


async def test_nodes_of_others_keep_what_others_wrote(kube: FakeKube) -> None:
    labels = {"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/gpu.count": "2"}
    capacity = {"nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "10"}
    meta = {"name": "theirs", "labels": labels, "annotations": {"hami.io/node-nvidia-register": "[]"}}
    before = await kube.create(NODES, {"metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}})
    await run(kube)
    assert await kube.get(NODES, "theirs") == before


async def test_s2_10_it_waits_for_daemons_of_mps(kube: FakeKube) -> None:
    daemon = MpsDaemon(gpu="GPU-0", state=MpsState.STOPPING, reason="it is not wanted")
    spec = msgspec.to_builtins(Inventory(node="gone", mps=(daemon,)))
    await kube.patch(INVENTORIES, "gone", {"spec": spec})
    assert "No word from the agents of dead, gone." in await run(kube)


async def test_s2_10_it_waits_for_what_was_made_of_mig_and_says_what_stays(kube: FakeKube) -> None:
    left = "GPU 0 keeps 1g.5gb at 6: it is in use by process 7"
    spec = msgspec.to_builtins(Inventory(node="gone", mig_left=(left,)))
    await kube.patch(INVENTORIES, "gone", {"spec": spec})
    said = f"Still there, and taken back by the node's agent when it is idle: gone: {left}."
    assert said in await run(kube)


async def test_s2_10_all_removes_our_kinds_too(kube: FakeKube) -> None:
    await run(kube, everything=True)
    assert (await kube.list(CUSTOM_RESOURCE_DEFINITIONS)).items == []
    assert [each["metadata"]["name"] for each in (await kube.list(LEASES)).items] == ["another"]
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("", {}),
        ("# mine\nhami: {deviceSplitCount: 4}\n", {"hami": {"deviceSplitCount": 4}}),
        ("enabled: true\nschedulers: [mine]", {"schedulers": ["mine"]}),
        ("{hami: {deviceSplitCount: 4}}", {"hami": {"deviceSplitCount": 4}}),
        ("enabled: false", {}),
    ],
)
def test_the_rest_of_the_configuration_stays(text: str, others: Mapping[str, Any]) -> None:
    changed = disabled(text)
    assert yaml.safe_load(changed) == {**others, "enabled": False}
    assert ("# mine" in text) == ("# mine" in changed)
