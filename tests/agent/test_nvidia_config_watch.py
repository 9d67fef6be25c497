"""Which configuration of NVIDIA's holds on a node: what is asked of the API server for it, and what is followed."""

import asyncio
import logging
from pathlib import Path

import pytest

from lamina.agent.nvidia.config_watch import RETRY_S, SETTLE_S, NvidiaConfigWatch, last_good_config
from lamina.agent.state.observed import NO_CONFIG
from lamina.configuration import DEFAULT
from lamina.ports.clock import FakeClock
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
    Unreachable,
)
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource
from lamina.ports.set_aside import SetAside

log = logging.getLogger(__name__)

NAMESPACE = "gpu-operator"
FORBIDDEN = Refused('configmaps "plugin" is forbidden')


def replicas(count: int) -> dict[str, str]:
    timed = f"{{resources: [{{name: nvidia.com/gpu, replicas: {count}}}]}}"
    return {"shared": f"{{version: v1, sharing: {{timeSlicing: {timed}}}}}"}


def policy(config_map: str) -> Object:
    config = {"name": config_map, "default": "shared"} if config_map else {}
    return {"metadata": {"name": "cluster-policy"}, "spec": {"devicePlugin": {"config": config}}}


class WatchedNode:
    """A node in a cluster with NVIDIA's operator, whose policy names this ConfigMap."""

    def __init__(self, folder: Path) -> None:
        self.kube = FakeKube()
        kept = last_good_config(folder / "nvidia.json", Files())
        self.clock = FakeClock()
        recorder = EventRecorder(self.kube, "lamina-agent", now=self.clock.wall)
        self.follower = NvidiaConfigWatch(
            self.kube, "n", kept, recorder, self.clock, SetAside(log), namespace=NAMESPACE
        )

    async def begin(self, config_map: str) -> None:
        await self.kube.create(NODES, {"metadata": {"name": "n"}})
        name = f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        await self.kube.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": name}})
        await self.kube.create(CLUSTER_POLICIES, policy(config_map))

    async def publish(self, namespace: str = NAMESPACE) -> None:
        meta = {"name": "plugin", "namespace": namespace}
        await self.kube.create(CONFIG_MAPS, {"metadata": meta, "data": replicas(4)})

    async def output(self) -> list[str]:
        return [each["message"] for each in (await self.kube.list(EVENTS)).items]

    def asked_for_config_maps(self) -> bool:
        return any(resource == CONFIG_MAPS for _, resource, _ in self.kube.calls)


@pytest.fixture
async def node(tmp_path: Path) -> WatchedNode:
    return WatchedNode(tmp_path)


async def test_config_maps_are_read_once_one_is_named(node: WatchedNode) -> None:
    await node.begin("")
    await node.publish()
    node.kube.calls.clear()
    present = await node.follower.current(DEFAULT)
    assert present == NO_CONFIG
    waiting = asyncio.create_task(node.follower.next_change(DEFAULT, present))
    await node.clock.advance(3 * RETRY_S)
    assert not node.asked_for_config_maps() and not waiting.done()
    await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", policy("plugin"))
    await node.clock.advance(2 * SETTLE_S)
    four = waiting.result()
    assert four.config and four.name == "shared"
    waiting = asyncio.create_task(node.follower.next_change(DEFAULT, four))
    await node.clock.advance(3 * RETRY_S)
    assert not waiting.done()
    await node.kube.patch(CONFIG_MAPS, "plugin", {"data": replicas(8)}, namespace=NAMESPACE)
    await node.clock.advance(2 * SETTLE_S)
    assert waiting.result() != four


async def test_a_change_that_cannot_be_read_at_once_is_read_later(node: WatchedNode) -> None:
    await node.begin("plugin")
    await node.publish()
    four = await node.follower.current(DEFAULT)
    waiting = asyncio.create_task(node.follower.next_change(DEFAULT, four))
    await node.clock.advance(SETTLE_S)
    node.kube.failing["get"] = lambda resource, name: Unreachable("the server is away")
    await node.kube.patch(CONFIG_MAPS, "plugin", {"data": replicas(8)}, namespace=NAMESPACE)
    await node.clock.advance(SETTLE_S + RETRY_S)
    assert not waiting.done()
    node.kube.failing.clear()
    await node.clock.advance(RETRY_S)
    assert waiting.result() != four


async def test_the_namespace_given_is_the_only_one(node: WatchedNode) -> None:
    await node.begin("plugin")
    await node.publish(DEFAULT.native_devices.config_map.namespace)
    assert await node.follower.current(DEFAULT) == NO_CONFIG
    assert "ConfigMap gpu-operator/plugin" in (await node.output())[0]
    await node.publish()
    assert (await node.follower.current(DEFAULT)).name == "shared"


async def test_an_agent_that_may_not_read_says_how_to_fix_it(node: WatchedNode) -> None:
    def forbid(resource: Resource, name: str) -> Refused | None:
        return FORBIDDEN if resource == CONFIG_MAPS else None

    await node.begin("plugin")
    await node.publish()
    node.kube.failing = {"get": forbid, "list": forbid}
    present = await node.follower.current(DEFAULT)
    assert present == NO_CONFIG
    (output,) = await node.output()
    assert "may not read ConfigMap gpu-operator/plugin" in output and "agent.nvidiaNamespace" in output
    node.kube.failing = {}
    waiting = asyncio.create_task(node.follower.next_change(DEFAULT, present))
    await node.clock.advance(2 * SETTLE_S)
    assert waiting.result().name == "shared"


@pytest.mark.parametrize("name", ["..", "a,b", "a\nb", "A", "x" * 300])
async def test_a_policy_that_names_what_is_no_name_is_refused_unread(node: WatchedNode, name: str) -> None:
    await node.begin(name)
    assert await node.follower.current(DEFAULT) == NO_CONFIG
    assert not node.asked_for_config_maps()
    (message,) = await node.output()
    assert message.startswith("ClusterPolicy cluster-policy: devicePlugin.config.name must be the name of a ConfigMap")
