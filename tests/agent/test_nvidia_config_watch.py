"""Which configuration of NVIDIA's holds on a node: what is asked of the API server for it, and what is followed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from lamina.agent.nvidia.config_watch import RETRY_S, SETTLE_S, NvidiaConfigWatch, last_good_config
from lamina.agent.state.observed import NO_CONFIG, Refusals
from lamina.configuration import DEFAULT, load
from lamina.configuration.nvidia.choice import LABEL
from lamina.core.gpus import RefusedConfiguration
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

Change = Callable[["WatchedNode"], Awaitable[None]]
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
        self.refusals, self.refused = Refusals(SetAside(log)), list[RefusedConfiguration]()
        self.refusals.publish_to(lambda refused: self.refused.__setitem__(slice(None), refused))
        recorder = EventRecorder(self.kube, "lamina-agent", now=self.clock.wall)
        self.follower = NvidiaConfigWatch(
            self.kube, "n", kept, recorder, self.clock, self.refusals, namespace=NAMESPACE
        )

    async def begin(self, config_map: str) -> None:
        await self.kube.create(NODES, {"metadata": {"name": "n"}})
        name = f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        await self.kube.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": name}})
        await self.kube.create(CLUSTER_POLICIES, policy(config_map))

    async def publish(self, namespace: str = NAMESPACE, names: Sequence[str] = ("shared",)) -> None:
        meta = {"name": "plugin", "namespace": namespace}
        data = dict.fromkeys(names, replicas(4)["shared"])
        await self.kube.create(CONFIG_MAPS, {"metadata": meta, "data": data})

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


NAMED_BY_US = load("nativeDevices: {configMap: {name: plugin}}", "c")
"""The ConfigMap that NVIDIA's chart makes, named as Helm's values name it."""


@pytest.mark.parametrize(
    ("names", "applied"), [(["config"], "config"), (["default", "a100"], "default"), (["a", "b"], ""), ([], "")]
)
async def test_a_config_map_named_by_the_configuration_applies_to_all_nodes(
    node: WatchedNode, names: list[str], applied: str
) -> None:
    await node.begin("")
    await node.publish(names=names)
    found = await node.follower.current(NAMED_BY_US)
    assert (found.name, found.config is not None) == (applied, bool(applied))
    assert not node.refused


async def test_one_named_by_a_cluster_policy_applies_where_a_label_or_its_default_says(node: WatchedNode) -> None:
    await node.begin("plugin")
    await node.publish(names=["default"])
    await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": {"devicePlugin": {"config": {"default": ""}}}})
    assert (await node.follower.current(NAMED_BY_US)).config is None
    await node.kube.patch(NODES, "n", {"metadata": {"labels": {LABEL: "default"}}})
    assert (await node.follower.current(NAMED_BY_US)).name == "default"


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


GONE = "no configuration of NVIDIA's plugin applies, and the node offers shares"
KEPT = "the previous one stays in force"


async def shared(node: WatchedNode) -> None:
    """The node shares its GPUs as the policy's default says, or as its label does, which names the same file."""
    await node.begin("plugin")
    await node.publish()
    await node.kube.patch(NODES, "n", {"metadata": {"labels": {LABEL: "shared"}}})
    assert (await node.follower.current(DEFAULT)).config is not None and node.refused == []


async def delete_policy(node: WatchedNode) -> None:
    await node.kube.delete(CLUSTER_POLICIES, "cluster-policy")


async def delete_config_map(node: WatchedNode) -> None:
    await node.kube.delete(CONFIG_MAPS, "plugin", namespace=NAMESPACE)


async def delete_file(node: WatchedNode) -> None:
    await node.kube.patch(
        CONFIG_MAPS, "plugin", {"data": {"shared": None, "other": "version: v1"}}, namespace=NAMESPACE
    )


async def empty_config_map(node: WatchedNode) -> None:
    await node.kube.patch(CONFIG_MAPS, "plugin", {"data": {"shared": None}}, namespace=NAMESPACE)


async def name_no_config_map(node: WatchedNode) -> None:
    await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": {"devicePlugin": {"config": None}}})


async def name_another_config_map(node: WatchedNode) -> None:
    config = {"name": "absent"}
    await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": {"devicePlugin": {"config": config}}})


@pytest.mark.parametrize(
    "delete",
    [delete_policy, delete_config_map, delete_file, empty_config_map, name_no_config_map],
)
async def test_what_is_deleted_does_not_stay_in_force(node: WatchedNode, delete: Change) -> None:
    await shared(node)
    waiting = asyncio.create_task(node.follower.next_change(DEFAULT, await node.follower.current(DEFAULT)))
    await node.clock.advance(SETTLE_S)
    await delete(node)
    await node.clock.advance(2 * SETTLE_S)
    assert waiting.result() == NO_CONFIG
    (refused,) = node.refused
    assert refused.reason.endswith(GONE) and refused.reason in await node.output()
    assert await node.follower.current(DEFAULT) == NO_CONFIG
    assert node.refused == [refused], "looking again says the same"


async def test_a_policy_deleted_from_a_node_without_a_label_leaves_nothing_to_refuse(node: WatchedNode) -> None:
    await node.begin("plugin")
    await node.publish()
    assert (await node.follower.current(DEFAULT)).config is not None
    await delete_policy(node)
    assert await node.follower.current(DEFAULT) == NO_CONFIG and node.refused == []


async def write_nonsense(node: WatchedNode) -> None:
    await node.kube.patch(CONFIG_MAPS, "plugin", {"data": {"shared": "version: v9"}}, namespace=NAMESPACE)


async def mistype_the_label(node: WatchedNode) -> None:
    await node.kube.patch(NODES, "n", {"metadata": {"labels": {LABEL: "shraed"}}})


async def name_a_config_map_without_that_file(node: WatchedNode) -> None:
    """As while an administrator changes to another ConfigMap, before its label."""
    meta = {"name": "other", "namespace": NAMESPACE}
    await node.kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"default": "version: v1"}})
    config = {"name": "other", "default": "default"}
    await node.kube.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": {"devicePlugin": {"config": config}}})


async def forbid_reading(node: WatchedNode) -> None:
    node.kube.failing["get"] = lambda resource, name: FORBIDDEN if resource == CONFIG_MAPS else None


@pytest.mark.parametrize(
    "mistake",
    [
        write_nonsense,
        mistype_the_label,
        name_another_config_map,
        name_a_config_map_without_that_file,
        forbid_reading,
    ],
)
async def test_a_mistake_leaves_the_previous_one_in_force(node: WatchedNode, mistake: Change) -> None:
    await shared(node)
    before = await node.follower.current(DEFAULT)
    await node.clock.advance(100)
    await mistake(node)
    for _ in range(2):
        assert await node.follower.current(DEFAULT) == before
        await node.clock.advance(100)
    (refused,) = node.refused
    assert refused.source.startswith(f"ConfigMap {NAMESPACE}/") and refused.reason.endswith(KEPT)
    assert refused.since == int(node.clock.wall()) - 200
    assert [message for message in await node.output() if KEPT in message] == [refused.reason]


async def test_what_is_corrected_is_refused_no_more(node: WatchedNode) -> None:
    await shared(node)
    await mistype_the_label(node)
    await node.follower.current(DEFAULT)
    assert node.refused
    await node.kube.patch(NODES, "n", {"metadata": {"labels": {LABEL: "shared"}}})
    assert (await node.follower.current(DEFAULT)).name == "shared" and node.refused == []
