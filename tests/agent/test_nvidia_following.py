"""Which configuration of NVIDIA's holds on a node: what is asked of the API server for it, and what is followed."""

import asyncio
from pathlib import Path

import pytest

from lamina.agent.nvidia_following import Kept, NvidiaFollower
from lamina.agent.nvidia_source import NONE
from lamina.dialects.config import DEFAULT
from lamina.ports.clock import SystemClock
from lamina.ports.files import Files
from lamina.ports.kube import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NODES,
    EventRecorder,
    Object,
    Refused,
)
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource

NAMESPACE = "gpu-operator"
FORBIDDEN = Refused('configmaps "plugin" is forbidden')


def replicas(count: int) -> dict[str, str]:
    timed = f"{{resources: [{{name: nvidia.com/gpu, replicas: {count}}}]}}"
    return {"shared": f"{{version: v1, sharing: {{timeSlicing: {timed}}}}}"}


def policy(config_map: str) -> Object:
    config = {"name": config_map, "default": "shared"} if config_map else {}
    return {"metadata": {"name": "cluster-policy"}, "spec": {"devicePlugin": {"config": config}}}


class Node:
    """A node in a cluster with NVIDIA's operator, whose policy names this ConfigMap."""

    def __init__(self, folder: Path) -> None:
        self.kube = FakeKube()
        kept = Kept(folder / "nvidia.json", Files())
        recorder = EventRecorder(self.kube, "lamina-agent", now=lambda: 0.0)
        self.follower = NvidiaFollower(self.kube, "n", kept, recorder, SystemClock(), namespace=NAMESPACE)

    async def begin(self, config_map: str) -> None:
        await self.kube.create(NODES, {"metadata": {"name": "n"}})
        name = f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        await self.kube.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": name}})
        await self.kube.create(CLUSTER_POLICIES, policy(config_map))

    async def publish(self, namespace: str = NAMESPACE) -> None:
        meta = {"name": "plugin", "namespace": namespace}
        await self.kube.create(CONFIG_MAPS, {"metadata": meta, "data": replicas(4)})

    async def said(self) -> list[str]:
        return [each["message"] for each in (await self.kube.list(EVENTS)).items]

    def asked_for_config_maps(self) -> bool:
        return any(resource == CONFIG_MAPS for _, resource, _ in self.kube.calls)


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_config_maps_are_asked_for_once_somebody_names_one(node: Node) -> None:
    await node.begin("")
    await node.publish()
    node.kube.calls.clear()
    present = await node.follower.present(DEFAULT)
    assert present == NONE
    async with asyncio.timeout(30):
        waiting = asyncio.create_task(node.follower.another(DEFAULT, present))
        await asyncio.sleep(0.3)
        assert not node.asked_for_config_maps()
        await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", policy("plugin"))
        four = await waiting
    assert four.config and four.name == "shared"
    async with asyncio.timeout(30):
        waiting = asyncio.create_task(node.follower.another(DEFAULT, four))
        await asyncio.sleep(0.3)
        await node.kube.patch(CONFIG_MAPS, "plugin", {"data": replicas(8)}, namespace=NAMESPACE)
        assert await waiting != four


async def test_the_namespace_given_is_the_only_one(node: Node) -> None:
    await node.begin("plugin")
    await node.publish(DEFAULT.nvidia.config.namespace)
    assert await node.follower.present(DEFAULT) == NONE
    assert "ConfigMap gpu-operator/plugin" in (await node.said())[0]
    await node.publish()
    assert (await node.follower.present(DEFAULT)).name == "shared"


async def test_an_agent_that_may_not_read_says_how_to_mend_it(node: Node) -> None:
    def forbid(resource: Resource, name: str) -> Refused | None:
        return FORBIDDEN if resource == CONFIG_MAPS else None

    await node.begin("plugin")
    await node.publish()
    node.kube.failing = {"get": forbid, "list": forbid}
    present = await node.follower.present(DEFAULT)
    assert present == NONE
    (said,) = await node.said()
    assert "may not read ConfigMap gpu-operator/plugin" in said and "agent.nvidiaNamespace" in said
    node.kube.failing = {}
    async with asyncio.timeout(30):
        assert (await node.follower.another(DEFAULT, present)).name == "shared"
