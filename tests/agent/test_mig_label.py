"""S2.4, S2.5, S1.7: the node's label decides how its GPUs are cut, and kubelet is offered what comes of it."""

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from msgspec import structs

from lamina.agent.inventory.native_devices import as_observed_gpus, units_by_resource
from lamina.agent.mig.label_partitioner import FAILED, LABEL, RETRY_S, STATE, SUCCESS
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration import mig_parted
from lamina.core.gpus import NativeResource
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MigDevice
from lamina.core.sharing import GPU, Strategy
from lamina.ports.kube import CLUSTER_POLICIES, CONFIG_MAPS, EVENTS, NODES, Object
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.allocations import Holder
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginStub
from lamina.ports.nvml import FakeNvml, GpuFacts, MigInstanceFacts
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.node import RESOURCE, container, share
from tests.agent.running_agent import NAMESPACE, STEP_S, RunningAgent

MIXED = "hami: {migStrategy: mixed}"
VALID_FILE = "{version: v1, mig-configs: {mine: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]}}"
HALF = "nvidia.com/mig-3g.20gb"


@pytest.fixture
async def node() -> AsyncIterator[RunningAgent]:
    """An agent's node of two A100 with 40 GB."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        made = RunningAgent(Path(folder))
        gpus = fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
        made.nvml = FakeNvml(
            (structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE) for gpu in gpus), made.clock
        )
        await made.kube.create(NODES, {"metadata": {"name": made.node.name, "labels": {}}})
        await made.kubelet.start()
        yield made
        await made.stop()
        await made.kubelet.stop()


async def label(node: RunningAgent, name: str) -> None:
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {LABEL: name}}})


async def state(node: RunningAgent, wanted: str) -> None:
    async def reached() -> bool:
        labels = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
        return bool(labels.get(STATE) == wanted)

    await node.until(reached)


def profiles(node: RunningAgent) -> list[list[str]]:
    return [sorted(each.profile for each in found) for _, found in sorted(node.nvml.instances.items())]


DISABLED = """
apiVersion: lamina.dev/v1alpha1
kind: Configuration
mig: {strategy: single, defaultConfiguration: all-disabled}
"""


async def labels(node: RunningAgent) -> dict[str, str]:
    found: dict[str, str] = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
    return found


async def test_a_node_without_the_label_gets_the_default_as_by_nvidias_operator(node: RunningAgent) -> None:
    await node.start(DISABLED)
    await state(node, SUCCESS)
    found = await labels(node)
    assert (found[LABEL], found["nvidia.com/mig.capable"]) == ("all-disabled", "true")
    await label(node, "all-3g.20gb")
    await node.until(lambda: profiles(node) == [["3g.20gb"] * 2] * 2)


@pytest.mark.parametrize("theirs", ["a label", "MIG mode", "grants", "no such GPU"])
async def test_where_others_decide_the_default_changes_nothing(node: RunningAgent, theirs: str) -> None:
    if theirs == "a label":
        await label(node, "")
    if theirs == "MIG mode":
        assert await node.nvml.set_mig_mode((await node.nvml.gpus())[0].uuid, True)
    if theirs == "no such GPU":
        node.nvml = FakeNvml(fake_gpus(1, name="Tesla T4", memory_mib=15360), node.clock)
    await node.start(DISABLED + ("sharing: {modes: [quota, mig]}\n" if theirs == "grants" else ""))
    await node.rounds(5)
    found = await labels(node)
    assert (found.get(LABEL, ""), found.get(STATE)) == ("", None)


async def test_s2_4_the_label_partitions_every_gpu_and_the_state_follows(node: RunningAgent) -> None:
    await node.start(MIXED)
    for name, each in (
        ("all-3g.20gb", ["3g.20gb"] * 2),
        ("all-1g.5gb", ["1g.5gb"] * 7),
        ("all-2g.10gb", ["2g.10gb"] * 3),
        ("all-4g.20gb", ["4g.20gb"]),
        ("all-balanced", ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]),
        ("all-7g.40gb", ["7g.40gb"]),
        ("all-disabled", []),
    ):
        await label(node, name)

        async def is_partitioned(each: list[str] = each) -> bool:
            return profiles(node) == [each, each]

        await node.until(is_partitioned)
        await state(node, SUCCESS)
    assert not any(gpu.mig_enabled for gpu in await node.nvml.gpus())


async def test_s2_5_devices_are_resources_by_profile_and_partitioned_gpus_are_not_shared(node: RunningAgent) -> None:
    await node.start(MIXED)
    await node.inventory(lambda found: len(found.gpus) == 2)
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)
    await node.inventory(lambda found: found.gpus == ())
    await label(node, "all-disabled")
    await node.devices(HALF, 0)
    await node.inventory(lambda found: len(found.gpus) == 2)


async def test_s2_5_the_strategy_may_stand_in_nvidias_configuration(node: RunningAgent) -> None:
    await node.start("nativeDevices: {fallbacks: [single], configs: {a: {version: v1, flags: {migStrategy: mixed}}}}")
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)


async def test_s2_5_single_offers_devices_as_gpus_and_shares_while_nothing_is_partitioned(node: RunningAgent) -> None:
    await node.start("hami: {migStrategy: single}")
    await node.devices(GPU, 20)
    await label(node, "all-3g.20gb")
    devices = await node.devices(GPU, 4)
    assert {device for device in devices if device.startswith("MIG-")} == devices.keys()
    offered = await node.inventory(lambda found: found.native_resources != ())
    assert (offered.gpus, offered.native_resources) == ((), (NativeResource(GPU, 4),))
    await label(node, "all-disabled")
    assert all(device.startswith("ticket-") for device in await node.devices(GPU, 20))
    await node.inventory(lambda found: found.native_resources == ())


async def test_s2_5_single_is_honoured_from_a_cluster_policy_alone(node: RunningAgent) -> None:
    policy = {"metadata": {"name": "cluster-policy"}, "spec": {"mig": {"strategy": "single"}}}
    await node.kube.create(CLUSTER_POLICIES, policy)
    await node.start()
    await label(node, "all-1g.5gb")
    await node.devices(GPU, 14)


async def test_s2_5_none_in_a_cluster_policy_leaves_it_to_the_file(node: RunningAgent) -> None:
    policy = {"metadata": {"name": "cluster-policy"}, "spec": {"mig": {"strategy": "none"}}}
    await node.kube.create(CLUSTER_POLICIES, policy)
    await node.start("nativeDevices: {fallbacks: [single], configs: {a: {version: v1, flags: {migStrategy: mixed}}}}")
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)


async def test_s2_5_single_offers_nothing_of_unequal_gpus_and_says_why(node: RunningAgent) -> None:
    await node.start("nativeDevices: {fallbacks: [single], configs: {a: {version: v1, flags: {migStrategy: single}}}}")
    await node.devices(GPU, 2)
    await label(node, "all-balanced")
    await node.devices(GPU, 0)

    async def reported() -> bool:
        return any("more than one MIG device type" in each["message"] for each in (await node.kube.list(EVENTS)).items)

    await node.until(reported)
    await label(node, "all-7g.40gb")
    await node.devices(GPU, 2)


async def test_s2_5_the_strategy_is_switched_while_gpus_are_partitioned(node: RunningAgent) -> None:
    await node.start("hami: {migStrategy: mixed}")
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)
    for strategy, resource, count in (("single", GPU, 4), ("mixed", HALF, 4), ("none", GPU, 0)):
        text = {"lamina.yaml": f"hami: {{migStrategy: {strategy}}}"}
        meta = {"metadata": {"name": "lamina", "namespace": NAMESPACE}, "data": text}
        if strategy == "single":
            await node.kube.create(CONFIG_MAPS, meta)
        else:
            await node.kube.patch(CONFIG_MAPS, "lamina", {"data": text}, namespace=NAMESPACE)
        await node.devices(resource, count)
    await node.inventory(lambda found: found.native_resources == ())


SLICED = """
nativeDevices:
  fallbacks: [single]
  configs:
    a:
      version: v1
      flags: {{migStrategy: {strategy}}}
      sharing:
        timeSlicing: {{renameByDefault: {rename}, failRequestsGreaterThanOne: true,
                      resources: [{{name: {name}, replicas: 2}}]}}
"""


@pytest.mark.parametrize(
    ("strategy", "name", "rename", "offered"),
    [
        ("mixed", HALF, "false", HALF),
        ("mixed", HALF, "true", f"{HALF}.shared"),
        ("single", "nvidia.com/gpu", "false", "nvidia.com/gpu"),
        ("single", "nvidia.com/gpu", "true", "nvidia.com/gpu.shared"),
    ],
)
async def test_s2_7_replicas_of_mig_devices(
    node: RunningAgent, strategy: str, name: str, rename: str, offered: str
) -> None:
    await node.start(SLICED.format(strategy=strategy, name=name, rename=rename))
    await label(node, "all-3g.20gb")
    ids = list(await node.devices(offered, 8))
    assert sorted({device.partition("::")[2] for device in ids}) == ["0", "1"]
    published = await node.inventory(lambda found: any(each.resource == offered for each in found.native_resources))
    assert NativeResource(offered, 8, 2, Strategy.TIME_SLICING) in published.native_resources
    async with node.kubelet.channel(offered) as channel:
        plugin = DevicePluginStub(channel)
        ask = messages.ContainerPreferredAllocationRequest(available_deviceIDs=ids, allocation_size=2)
        answer = await plugin.GetPreferredAllocation(messages.PreferredAllocationRequest(container_requests=[ask]))
        chosen = list(answer.container_responses[0].deviceIDs)
        assert len({device.partition("::")[0] for device in chosen}) == 2, "two devices, not one twice"
        wish = messages.ContainerAllocateRequest(devices_ids=chosen)
        with pytest.raises(grpc.aio.AioRpcError, match="maximum request size for shared resources is 1; found 2"):
            await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))


async def test_a_container_gets_the_device_that_kubelet_chose(node: RunningAgent) -> None:
    gpu = node.nvml.present[0].uuid
    await node.nvml.set_mig_mode(gpu, True)
    uuid = (await node.nvml.create_mig(gpu, Placed("3g.20gb", 0))).uuid
    await node.start(MIXED)
    await node.devices(HALF, 1)
    await node.node.pod("p")
    node.kubelet.held.append((HALF, Holder("default", "p", "main", frozenset({uuid}))))
    async with node.kubelet.channel(HALF) as channel:
        plugin = DevicePluginStub(channel)
        wish = messages.ContainerAllocateRequest(devices_ids=[uuid])
        answer = await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))
        await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=[uuid]))
        name = answer.container_responses[0].cdi_devices[0].name
        (spec,) = node.settings.cdi_dir.iterdir()
        (device,) = json.loads(spec.read_text())["devices"]
        assert device["name"] == name.partition("=")[2]
        edits = device["containerEdits"]
        assert edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={uuid}"]
        assert [each["containerPath"] for each in edits["mounts"]] == [f"/var/run/nvidia-container-devices/{uuid}"]
        node.nvml.instances.clear()

        async def is_refused() -> bool:
            try:
                await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=[uuid]))
            except grpc.aio.AioRpcError as error:
                return f"holds {uuid}, but this MIG device no longer exists" in str(error.details())
            return False

        await node.until(is_refused)


async def test_s2_7_replicas_of_mig_devices_do_not_start_where_each_should_have_a_part_of_the_memory(
    node: RunningAgent,
) -> None:
    text = SLICED.format(strategy="mixed", name=HALF, rename="false")
    await node.start(text.replace("nativeDevices:", "nativeDevices:\n  replicaMemory: equal"))
    await label(node, "all-3g.20gb")
    replica = next(iter(await node.devices(HALF, 8)))
    await node.node.pod("p")
    node.kubelet.held.append((HALF, Holder("default", "p", "main", frozenset({replica}))))
    async with node.kubelet.channel(HALF) as channel:
        plugin = DevicePluginStub(channel)
        wish = messages.ContainerAllocateRequest(devices_ids=[replica])
        await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))
        with pytest.raises(grpc.aio.AioRpcError, match="the memory of a MIG device cannot be divided"):
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=[replica]))


async def test_a_gpu_in_use_fails_with_the_pod_and_is_partitioned_when_it_is_idle(
    node: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.agent.mig.label_partitioner.RETRY_S", 0.1)
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)
    uuid = next(iter(node.nvml.instances.values()))[0].uuid
    node.kubelet.held.append((HALF, Holder("default", "busy", "main", frozenset({uuid}))))
    await label(node, "all-1g.5gb")
    await state(node, FAILED)
    events = [event for event in (await node.kube.list(EVENTS)).items if event["reason"] == "MigNotApplied"]
    assert "cannot remove 3g.20gb while in use by pod default/busy" in events[0]["message"]
    assert any(each.uuid == uuid for found in node.nvml.instances.values() for each in found)
    tries, tried = 0, node.nvml.gpus

    async def counted() -> tuple[GpuFacts, ...]:
        nonlocal tries
        tries += 1
        return await tried()

    monkeypatch.setattr(node.nvml, "gpus", counted)
    node.kube.calls.clear()
    await node.until(lambda: tries > 20)
    patches = node.kube.calls.count(("patch", NODES, node.node.name))
    assert patches < 5, "other marks may follow what was cut, but trying again does not write to the node each time"
    monkeypatch.setattr(node.nvml, "gpus", tried)
    node.kubelet.held.clear()
    await state(node, SUCCESS)
    assert profiles(node) == [["1g.5gb"] * 7] * 2


async def test_a_geometry_comes_back_after_a_reboot(node: RunningAgent) -> None:
    await label(node, "all-balanced")
    await node.start(MIXED)
    await state(node, SUCCESS)
    before = profiles(node)
    node.nvml.instances.clear()
    node.nvml.present = [structs.replace(gpu, mig_enabled=False) for gpu in node.nvml.present]

    async def is_back() -> bool:
        return profiles(node) == before

    await node.until(is_back)


async def test_a_node_without_the_label_any_more_has_no_state_and_stays_as_it_is(node: RunningAgent) -> None:
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await state(node, SUCCESS)
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {LABEL: None}}})

    async def is_gone() -> bool:
        return STATE not in (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]

    await node.until(is_gone)
    assert profiles(node) == [["3g.20gb"] * 2] * 2


async def test_a_node_that_is_not_selected_is_left_alone(node: RunningAgent) -> None:
    await label(node, "all-3g.20gb")
    await node.start("hami: {migStrategy: mixed}\nnodes: {selector: {gpu: 'on'}}")
    await node.inventory(lambda found: found.gpus == ())
    await node.rounds(10)
    assert profiles(node) == []
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {"gpu": "on"}}})
    await node.devices(HALF, 4)


async def test_s2_5_labels_describe_partitioned_gpus(node: RunningAgent) -> None:
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await node.devices(HALF, 4)
    await node.inventory(lambda found: found.gpus == ())

    async def labelled() -> bool:
        labels = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
        reported = [labels.get(f"nvidia.com/{name}") for name in ("mig.capable", "mig.strategy", "gpu.count")]
        return reported == ["true", "mixed", "2"]

    await node.until(labelled)


async def test_without_a_label_nothing_is_touched_and_devices_are_offered(node: RunningAgent) -> None:
    gpu = node.nvml.present[0].uuid
    await node.nvml.set_mig_mode(gpu, True)
    await node.nvml.create_mig(gpu, Placed("3g.20gb", 0))
    await node.start(MIXED)
    await node.devices(HALF, 1)
    assert profiles(node) == [["3g.20gb"]]
    assert STATE not in (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]


@pytest.mark.parametrize(
    ("config", "instance", "offered"),
    [
        ("", False, False),
        ("", True, False),
        (MIXED, False, False),
        (MIXED, True, True),
        ("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nsharing: {modes: [quota, mig]}", False, True),
    ],
)
async def test_s1_d_a_gpu_in_mig_mode_that_nothing_uses_is_named(
    node: RunningAgent, config: str, instance: bool, offered: bool
) -> None:
    """As after the step `nvidia-smi -mig 1` of a guide, under a configuration without MIG."""
    gpu = node.nvml.present[0]
    await node.nvml.set_mig_mode(gpu.uuid, True)
    if instance:
        await node.nvml.create_mig(gpu.uuid, Placed("3g.20gb", 0))
    await node.start(config)
    found = await node.inventory(lambda inventory: bool(inventory.refused) is not offered)
    if not offered:
        (refused,) = found.refused
        assert refused.source == f"GPU 0 ({gpu.uuid})" and "nvidia-smi -i 0 -mig 0" in refused.reason
        await node.until(lambda: named(node, "MigModeNotUsed"))
        await label(node, "all-1g.5gb")
        await node.inventory(lambda inventory: not inventory.refused)


@pytest.mark.parametrize("config", ["", "sharing: {modes: [quota, mig]}"])
async def test_s1_d_pods_whose_gpu_was_put_in_mig_mode_are_named(node: RunningAgent, config: str) -> None:
    """Their programs find no GPU; the driver lets an administrator do that while none of them runs."""
    gpu = node.nvml.present[0].uuid
    await node.start(config)
    await node.devices(RESOURCE, 20)
    await node.node.pod("p", container("main", structs.replace(share(0, 4096), gpu=gpu)))
    await node.started("p", "ticket-4")
    await node.nvml.set_mig_mode(gpu, True)
    found = await node.inventory(lambda inventory: bool(inventory.refused))
    assert [each.reason for each in found.refused] == [
        "it is in MIG mode, and programs in pod default/p find no GPU; turn that off with nvidia-smi -i 0 -mig 0, or "
        "delete the pods"
    ]
    await node.nvml.set_mig_mode(gpu, False)
    await node.inventory(lambda inventory: not inventory.refused)


async def named(node: RunningAgent, reason: str) -> bool:
    return any(event["reason"] == reason for event in (await node.kube.list(EVENTS)).items)


async def test_s1_7_a_customised_geometry_is_used_and_an_impossible_one_refused(
    node: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.agent.mig.label_partitioner.RETRY_S", 0.1)

    def file(counts: str) -> dict[str, object]:
        entries = f"[{{devices: [1], mig-enabled: true, mig-devices: {counts}}}]"
        return {"data": {"config.yaml": f"{{version: v1, mig-configs: {{ours: {entries}}}}}"}}

    meta = {"metadata": {"name": "mig-parted-config", "namespace": NAMESPACE}}
    await node.kube.create(CONFIG_MAPS, meta | file("{3g.20gb: 1, 1g.10gb: 2}"))
    await node.start(MIXED)
    await label(node, "ours")
    await state(node, SUCCESS)
    assert profiles(node) == [["1g.10gb", "1g.10gb", "3g.20gb"]]
    impossible = file("{4g.20gb: 2}")
    await node.kube.patch(CONFIG_MAPS, "mig-parted-config", impossible, namespace=NAMESPACE)
    await state(node, FAILED)
    (event,) = [event for event in (await node.kube.list(EVENTS)).items if event["reason"] == "MigNotApplied"]
    assert "2 4g.20gb do not fit A100-40GB" in event["message"] and "1 4g.20gb" in event["message"]
    assert profiles(node) == [["1g.10gb", "1g.10gb", "3g.20gb"]]


CARD = MIG_CARDS["A100-40GB"]


def partitioned_gpu(index: int, *profiles: str, enabled: bool = True) -> tuple[ObservedGpu, tuple[MigDevice, ...]]:
    facts = structs.replace(fake_gpus(index + 1)[index], mig_capable=True, mig_enabled=enabled)
    parts = (MigInstanceFacts(n, profile, 0, f"MIG-{index}-{n}", n) for n, profile in enumerate(profiles))
    return ObservedGpu(facts), tuple(MigDevice(facts.uuid, part, CARD.profile(part.profile)) for part in parts)


def offered(*gpus: tuple[ObservedGpu, tuple[MigDevice, ...]]) -> dict[str, int]:
    """How many units of each resource the strategy single offers."""
    states = {state.facts.uuid: state for state, _ in gpus}
    units = units_by_resource("single", states, [part for _, parts in gpus for part in parts])
    return {name: len(each) for name, each in units.items()}


def test_s2_5_single_offers_all_instances_or_none() -> None:
    full, part = partitioned_gpu(0, "1g.5gb", "1g.5gb"), partitioned_gpu(1, "1g.5gb")
    assert offered(full, part) == {GPU: 3}
    assert offered(full, partitioned_gpu(1, enabled=False)) == {}


def test_names_of_resources_and_health_follow_from_profile_and_gpu() -> None:
    state, parts = partitioned_gpu(0, "1g.5gb+me", "1g.5gb")
    sick = {state.facts.uuid: state._replace(reason="XID 79")}
    assert {name: len(each) for name, each in units_by_resource("mixed", sick, parts).items()} == {
        "nvidia.com/mig-1g.5gb.me": 1,
        "nvidia.com/mig-1g.5gb": 1,
    }
    assert not any(unit.healthy for each in units_by_resource("mixed", sick, parts).values() for unit in each)
    assert units_by_resource("none", sick, parts) == {}
    assert {each.facts.memory_mib for each in as_observed_gpus(sick, parts).values()} == {
        CARD.profile("1g.5gb").memory_mib
    }


def mig_parted_file(text: str) -> Object:
    meta = {"name": mig_parted.CONFIG_MAP, "namespace": NAMESPACE}
    return {"metadata": meta, "data": {mig_parted.CONFIG_MAP_KEY: text}}


async def test_a_file_that_is_wrong_is_counted_and_logged_once(
    node: RunningAgent, caplog: pytest.LogCaptureFixture
) -> None:
    await node.kube.create(CONFIG_MAPS, mig_parted_file("version: v2"))
    await node.start(MIXED)
    await label(node, "mine")
    await state(node, FAILED)
    await node.rounds(int(3 * RETRY_S / STEP_S))
    assert node.aside.counts == {"MIG configuration": 1}
    assert caplog.text.count("unknown version: v2") == 1


@pytest.mark.parametrize(("text", "end"), [("version: v2", FAILED), (VALID_FILE, SUCCESS)])
async def test_a_file_is_parsed_when_it_changes(
    node: RunningAgent, text: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest ones take seconds, in which the agent does nothing else."""
    parsed = []
    load = mig_parted.load
    monkeypatch.setattr(mig_parted, "load", lambda text, where: parsed.append(text) or load(text, where))
    await node.kube.create(CONFIG_MAPS, mig_parted_file(text))
    await node.start(MIXED)
    await label(node, "mine")
    await state(node, end)
    await node.rounds(int(3 * RETRY_S / STEP_S))
    assert parsed == [text]
    await node.kube.replace(CONFIG_MAPS, mig_parted_file("version: v3"))
    await node.until(lambda: len(parsed) == 2)
