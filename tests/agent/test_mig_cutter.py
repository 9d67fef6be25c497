"""S2.4, S2.5, S1.7: the node's label decides how its GPUs are cut, and kubelet is offered what comes of it."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from msgspec import structs

from lamina.agent.mig.cutter import FAILED, LABEL, STATE, SUCCESS
from lamina.agent.mig.offering import resources
from lamina.agent.mig.specs import Specs
from lamina.model.mig import Placed
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, EVENTS, NODES
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginStub
from lamina.ports.kubelet.podresources import Holder
from lamina.ports.nvml import FakeNvml, MigInstance
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.test_agent import NAMESPACE, Running

MIXED = "hami: {migStrategy: mixed}"
HALF = "nvidia.com/mig-3g.20gb"


@pytest.fixture
async def node() -> AsyncIterator[Running]:
    """An agent's node of two A100 with 40 GB."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        made = Running(Path(folder))
        gpus = fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
        made.nvml = FakeNvml(structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE) for gpu in gpus)
        await made.kube.create(NODES, {"metadata": {"name": made.node.name, "labels": {}}})
        await made.kubelet.start()
        yield made
        await made.stop()
        await made.kubelet.stop()


async def label(node: Running, name: str) -> None:
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {LABEL: name}}})


async def reaches(happened: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(750):
        if await happened():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen in time")


async def state(node: Running, wanted: str) -> None:
    async def reached() -> bool:
        labels = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
        return bool(labels.get(STATE) == wanted)

    await reaches(reached)


def profiles(node: Running) -> list[list[str]]:
    return [sorted(each.profile for each in found) for _, found in sorted(node.nvml.instances.items())]


async def test_s2_4_the_label_cuts_every_gpu_and_says_so(node: Running) -> None:
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

        async def is_cut(each: list[str] = each) -> bool:
            return profiles(node) == [each, each]

        await reaches(is_cut)
        await state(node, SUCCESS)
    assert not any(gpu.mig_enabled for gpu in await node.nvml.gpus())


async def test_s2_5_devices_are_resources_by_their_profiles_and_cut_gpus_are_not_shared(node: Running) -> None:
    await node.start(MIXED)
    await node.inventory(lambda found: len(found.gpus) == 2)
    await label(node, "all-3g.20gb")
    await node.kubelet.until(HALF, 4)
    await node.inventory(lambda found: found.gpus == ())
    await label(node, "all-disabled")
    await node.kubelet.until(HALF, 0)
    await node.inventory(lambda found: len(found.gpus) == 2)


async def test_s2_5_the_strategy_may_stand_in_nvidias_configuration(node: Running) -> None:
    await node.start("nvidia: {fallbacks: [single], configs: {a: {version: v1, flags: {migStrategy: mixed}}}}")
    await label(node, "all-3g.20gb")
    await node.kubelet.until(HALF, 4)


async def test_a_container_gets_the_device_that_kubelet_chose(node: Running) -> None:
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await node.kubelet.until(HALF, 4)
    uuid = next(iter(node.nvml.instances.values()))[0].uuid
    async with node.kubelet.channel(HALF) as channel:
        plugin = DevicePluginStub(channel)
        wish = messages.ContainerAllocateRequest(devices_ids=[uuid])
        answer = await plugin.Allocate(messages.AllocateRequest(container_requests=[wish]))
        await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=[uuid]))
        name = answer.container_responses[0].cdi_devices[0].name
        assert name.startswith("lamina.dev/mig=")
        (spec,) = node.settings.cdi_dir.glob("lamina.dev-mig_*.json")
        (device,) = json.loads(spec.read_text())["devices"]
        assert device == {
            "name": name.partition("=")[2], "containerEdits": {"env": [f"NVIDIA_VISIBLE_DEVICES={uuid}"]},
        }  # fmt: skip
        with pytest.raises(grpc.aio.AioRpcError, match="MIG-gone is not there any more"):
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=["MIG-gone"]))


async def test_a_gpu_in_use_fails_with_the_pod_and_is_cut_when_it_is_idle(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.agent.mig.cutter.AGAIN_S", 0.1)
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await node.kubelet.until(HALF, 4)
    uuid = next(iter(node.nvml.instances.values()))[0].uuid
    node.kubelet.held.append((HALF, Holder("default", "busy", "main", frozenset({uuid}))))
    await label(node, "all-1g.5gb")
    await state(node, FAILED)
    events = [event for event in (await node.kube.list(EVENTS)).items if event["reason"] == "MigNotApplied"]
    assert "3g.20gb is in use by pod default/busy" in events[0]["message"]
    assert any(each.uuid == uuid for found in node.nvml.instances.values() for each in found)
    node.kubelet.held.clear()
    await state(node, SUCCESS)
    assert profiles(node) == [["1g.5gb"] * 7] * 2


async def test_a_geometry_comes_back_after_a_reboot(node: Running) -> None:
    await label(node, "all-balanced")
    await node.start(MIXED)
    await state(node, SUCCESS)
    before = profiles(node)
    node.nvml.instances.clear()
    node.nvml.present = [structs.replace(gpu, mig_enabled=False) for gpu in node.nvml.present]

    async def is_back() -> bool:
        return profiles(node) == before

    await reaches(is_back)


async def test_a_node_without_the_label_any_more_has_no_state_and_stays_as_it_is(node: Running) -> None:
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await state(node, SUCCESS)
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {LABEL: None}}})

    async def is_gone() -> bool:
        return STATE not in (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]

    await reaches(is_gone)
    assert profiles(node) == [["3g.20gb"] * 2] * 2


async def test_a_node_that_is_not_selected_is_left_alone(node: Running) -> None:
    await label(node, "all-3g.20gb")
    await node.start("hami: {migStrategy: mixed}\nnodeSelector: {gpu: 'on'}")
    await node.inventory(lambda found: found.gpus == ())
    await asyncio.sleep(10 * node.settings.poll_s)
    assert profiles(node) == []
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {"gpu": "on"}}})
    await node.kubelet.until(HALF, 4)


async def test_s2_5_labels_tell_of_gpus_that_are_cut(node: Running) -> None:
    await node.start(MIXED)
    await label(node, "all-3g.20gb")
    await node.kubelet.until(HALF, 4)
    await node.inventory(lambda found: found.gpus == ())

    async def labelled() -> bool:
        labels = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
        told = [labels.get(f"nvidia.com/{name}") for name in ("mig.capable", "mig.strategy", "gpu.count")]
        return told == ["true", "mixed", "2"]

    await reaches(labelled)


async def test_without_a_label_nothing_is_touched_and_devices_are_offered(node: Running) -> None:
    gpu = node.nvml.present[0].uuid
    await node.nvml.set_mig_mode(gpu, True)
    await node.nvml.create_mig(gpu, Placed("3g.20gb", 0))
    await node.start(MIXED)
    await node.kubelet.until(HALF, 1)
    assert profiles(node) == [["3g.20gb"]]
    assert STATE not in (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]


async def test_s1_7_a_customised_geometry_is_used_and_an_impossible_one_refused(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.agent.mig.cutter.AGAIN_S", 0.1)

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


def test_half_made_instances_and_other_strategies_offer_nothing() -> None:
    there = [MigInstance(1, "1g.5gb+me", 0, "MIG-a"), MigInstance(2, "1g.5gb", 1, "")]
    assert resources("mixed", there) == {"nvidia.com/mig-1g.5gb.me": ("MIG-a",)}
    assert resources("none", there) == {}


def test_a_spec_goes_with_any_of_its_devices(tmp_path: Path) -> None:
    specs = Specs(tmp_path, Files())
    specs.write(["MIG-a"])
    specs.write(["MIG-b", "MIG-a"])
    (tmp_path / "others.json").write_text("{}")
    specs.sweep(["MIG-a"])
    assert len(list(tmp_path.iterdir())) == 2
    specs.sweep([])
    assert [path.name for path in tmp_path.iterdir()] == ["others.json"]
