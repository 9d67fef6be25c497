"""The whole agent with fake ports: what it publishes, allocates, prepares, repairs and leaves behind."""

import stat
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from lamina.agent.run import run
from lamina.agent.state.settings import AgentSettings
from lamina.core.nodes import KEPT_OUT
from lamina.defragmentation.cordon import set_cordoned
from lamina.errors import BadInput
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, EVENTS, INVENTORIES, NODES, PODS, NotFound
from tests.agent.node import KIND, RESOURCE, container, share
from tests.agent.running_agent import NAMESPACE, RunningAgent
from tests.enforcement.leases import lease
from tests.worlds.objects import config_map


async def test_it_publishes_and_hands_out_what_the_node_has(running: RunningAgent) -> None:
    await running.start("hami: {deviceSplitCount: 4}")
    await running.devices(RESOURCE, 8)
    published = await running.inventory(lambda found: len(found.gpus) == 2)
    assert published.driver == "515.86.01"
    assert [gpu.slots for gpu in published.gpus] == [4, 4]
    node = await running.kube.get(NODES, running.node.name)
    (owner,) = (await running.kube.get(INVENTORIES, running.node.name))["metadata"]["ownerReferences"]
    assert owner["uid"] == node["metadata"]["uid"]


async def test_only_root_can_enter_the_directory_of_limit_files(running: RunningAgent) -> None:
    containers = running.settings.containers
    containers.mkdir(parents=True, mode=0o755)  # as an earlier version made it
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    assert stat.S_IMODE(containers.stat().st_mode) == 0o700


async def test_no_container_can_lease_the_facade(running: RunningAgent) -> None:
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    (preload,) = running.settings.libraries.rglob("ld.so.preload")
    with lease(preload) as taken:
        assert taken != "leased"


async def test_it_writes_only_what_has_changed(running: RunningAgent) -> None:
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    before = (await running.kube.get(INVENTORIES, running.node.name))["metadata"]["resourceVersion"]
    await running.rounds(6)
    await running.stop()
    await running.start()
    await running.devices(RESOURCE, 20)
    await running.rounds(4)
    assert (await running.kube.get(INVENTORIES, running.node.name))["metadata"]["resourceVersion"] == before


async def test_a_removed_inventory_is_written_again(running: RunningAgent) -> None:
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    await running.until(lambda: ("watch", INVENTORIES, "") in running.kube.calls)
    await running.kube.delete(INVENTORIES, running.node.name)
    await running.inventory(lambda found: len(found.gpus) == 2)


async def test_an_inventory_does_not_outlive_its_node(running: RunningAgent) -> None:
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    await running.until(lambda: ("watch", INVENTORIES, "") in running.kube.calls)
    await running.kube.delete(NODES, running.node.name)
    await running.rounds(6)
    with pytest.raises(NotFound):
        await running.kube.get(INVENTORIES, running.node.name)
    node = await running.kube.create(NODES, {"metadata": {"name": running.node.name}})
    await running.inventory(lambda found: len(found.gpus) == 2)
    (owner,) = (await running.kube.get(INVENTORIES, running.node.name))["metadata"]["ownerReferences"]
    assert owner["uid"] == node["metadata"]["uid"]


async def test_a_sick_gpu_takes_its_tickets_and_a_lost_one_comes_back(running: RunningAgent) -> None:
    await running.start()
    await running.devices(RESOURCE, 20)
    running.nvml.strike(running.nvml.present[1].uuid, 79)
    assert len(await running.devices(RESOURCE, 10)) == 20
    sick = await running.inventory(lambda found: not all(gpu.healthy for gpu in found.gpus))
    assert [gpu.reason for gpu in sick.gpus] == ["", "the driver reported XID 79"]
    lost = running.nvml.present.pop(0)
    await running.devices(RESOURCE, 0)
    running.nvml.present.insert(0, lost)
    await running.devices(RESOURCE, 10)


async def test_a_missing_driver_is_reported_and_used_when_it_returns(running: RunningAgent) -> None:
    running.nvml.broken = "NVML does not tell the driver's version: Driver Not Loaded"
    await running.start()
    await running.inventory(lambda found: found.gpus == ())
    running.nvml.broken = ""
    await running.devices(RESOURCE, 20)
    running.nvml.broken = "NVML does not tell the driver's version: Driver Not Loaded"
    await running.devices(RESOURCE, 0)
    sick = await running.inventory(lambda found: not any(gpu.healthy for gpu in found.gpus))
    assert "Driver Not Loaded" in sick.gpus[0].reason


async def test_a_driver_that_is_away_while_the_agent_starts_hides_no_gpu(running: RunningAgent) -> None:
    await running.start()
    before = await running.inventory(lambda found: len(found.gpus) == 2)
    await running.stop()
    running.nvml.broken = "NVML does not tell the driver's version: Driver Not Loaded"
    await running.start()
    sick = await running.inventory(lambda found: not any(gpu.healthy for gpu in found.gpus))
    assert [gpu.uuid for gpu in sick.gpus] == [gpu.uuid for gpu in before.gpus]
    assert "Driver Not Loaded" in sick.gpus[0].reason
    assert sick.driver == before.driver
    running.nvml.broken = ""
    await running.devices(RESOURCE, 20)
    assert await running.inventory(lambda found: all(gpu.healthy for gpu in found.gpus)) == before


async def test_a_failing_gpu_is_an_event_of_the_node(running: RunningAgent) -> None:
    await running.start("health: {recoverySeconds: 0.2}")
    await running.devices(RESOURCE, 20)
    uuid = running.nvml.present[1].uuid
    running.nvml.strike(uuid, 31)
    running.nvml.strike(uuid, 79)
    await running.devices(RESOURCE, 10)
    await running.devices(RESOURCE, 20)

    await running.until(lambda: [verb for verb, kind, _ in running.kube.calls if kind == EVENTS] == ["create"] * 2)
    events = (await running.kube.list(EVENTS)).items
    assert {event["involvedObject"]["kind"] for event in events} == {"Node"}
    assert [(event["type"], event["reason"], event["message"]) for event in events] == [
        ("Warning", "GpuUnhealthy", f"{uuid}: the driver reported XID 79"),
        ("Normal", "GpuHealthy", f"{uuid} is healthy again"),
    ]


async def test_a_node_offers_nothing_until_its_labels_select_it(running: RunningAgent) -> None:
    name = running.node.name
    await running.start('nodes: {selector: {gpu: "on"}}')
    assert await running.devices(RESOURCE, 0) == {}
    await running.inventory(lambda found: found.gpus == ())
    await running.kube.patch(NODES, name, {"metadata": {"labels": {"gpu": "on"}}})
    await running.devices(RESOURCE, 20)
    await running.inventory(lambda found: len(found.gpus) == 2)
    await running.kube.patch(NODES, name, {"metadata": {"labels": {"gpu": None}}})
    assert await running.devices(RESOURCE, 0) == {}
    await running.inventory(lambda found: found.gpus == ())


@pytest.mark.parametrize(("label", "value"), [(label, values[0]) for label, values in KEPT_OUT])
async def test_a_node_that_is_no_longer_selected_offers_nothing(running: RunningAgent, label: str, value: str) -> None:
    name = running.node.name
    await running.start()
    await running.devices(RESOURCE, 20)
    await running.kube.patch(NODES, name, {"metadata": {"labels": {label: value}}})
    assert await running.devices(RESOURCE, 0) == {}
    await running.inventory(lambda found: found.gpus == ())
    await running.kube.patch(NODES, name, {"metadata": {"labels": {label: None}}})
    await running.devices(RESOURCE, 20)


async def test_a_removed_agent_removes_its_labels_and_annotations(running: RunningAgent) -> None:
    """It looks at them seldom, and is ended at once."""
    running.settings = replace(running.settings, poll_s=1.0)
    await running.start()

    async def metadata() -> set[str]:
        node = await running.kube.get(NODES, running.node.name)
        meta, status = node["metadata"], node.get("status") or {}
        return {*(meta.get("labels") or {}), *(meta.get("annotations") or {}), *(status.get("capacity") or {})}

    async def written() -> bool:
        return "hami.io/node-nvidia-register" in await metadata()

    await running.until(written)
    await running.kube.patch(NODES, running.node.name, {"metadata": {"labels": {"lamina.dev/agent": "false"}}})
    await running.inventory(lambda found: found.gpus == ())
    assert await written(), "it has not looked again"
    await running.stop()
    assert await metadata() == {"lamina.dev/agent"}


async def test_a_cordon_is_published_and_survives_a_restart(running: RunningAgent) -> None:
    uuid = running.nvml.present[1].uuid
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2 and not any(gpu.cordoned for gpu in found.gpus))
    assert await set_cordoned(running.kube, running.node.name, "1", cordoned=True) == uuid
    published = await running.inventory(lambda found: any(gpu.cordoned for gpu in found.gpus))
    assert [gpu.cordoned for gpu in published.gpus] == [False, True]
    assert all(gpu.healthy for gpu in published.gpus)
    await running.stop()
    before = (await running.kube.get(INVENTORIES, running.node.name))["metadata"]["resourceVersion"]
    await running.start()
    await running.devices(RESOURCE, 20)
    await running.rounds(2)
    found = await running.kube.get(INVENTORIES, running.node.name)
    assert found["metadata"]["resourceVersion"] == before, "the agent knows of the cordon before it publishes"
    await set_cordoned(running.kube, running.node.name, uuid, cordoned=False)
    await running.inventory(lambda found: not any(gpu.cordoned for gpu in found.gpus))
    with pytest.raises(BadInput, match="has no GPU 7; its GPUs are: 0 "):
        await set_cordoned(running.kube, running.node.name, "7", cordoned=True)


async def test_it_follows_the_configuration_and_keeps_what_was_prepared(running: RunningAgent) -> None:
    await running.start()
    await running.devices(RESOURCE, 20)
    uid = await running.node.pod("p", container("main", share(0, 4096)))
    await running.started("p", "ticket-4")
    text = "hami: {deviceSplitCount: 3, deviceMemoryScaling: 2}"
    await running.kube.create(CONFIG_MAPS, config_map(text))
    await running.devices(RESOURCE, 6)
    changed = await running.inventory(lambda found: {gpu.slots for gpu in found.gpus} == {3})
    assert {gpu.capacity_mib for gpu in changed.gpus} == {65536}
    assert (running.settings.containers / f"{uid}_main" / "limits").is_file()
    await running.kube.patch(CONFIG_MAPS, "lamina", config_map("resourceName: example.com/gpu"), namespace=NAMESPACE)
    await running.devices("example.com/gpu", 20)


async def test_a_container_is_prepared_kept_over_a_restart_and_released(running: RunningAgent) -> None:
    await running.start()
    await running.devices(RESOURCE, 20)
    uid = await running.node.pod("p", container("main", share(0, 4096)))
    name = await running.started("p", "ticket-4")
    spec = running.root / "cdi" / f"lamina.dev-ticket_{name}.json"
    folder = running.root / "state" / "containers" / f"{uid}_main"
    assert spec.is_file()
    assert (folder / "limits").stat().st_mode & 0o777 == 0o444
    assert (folder / "usage").stat().st_mode & 0o777 == 0o666
    await running.stop()
    assert not (running.kubelet.plugins / KIND.endpoint).exists()
    await running.start()
    await running.devices(RESOURCE, 20)
    assert spec.is_file()
    running.kubelet.held.clear()
    await running.kube.delete(PODS, "p", namespace="default")
    await running.until(lambda: not spec.exists() and not folder.exists())


async def test_a_pod_without_a_grant_is_refused_with_the_reason(running: RunningAgent) -> None:
    await running.start()
    await running.devices(RESOURCE, 20)
    await running.node.pod("p")
    with pytest.raises(grpc.RpcError) as caught:
        await running.started("p", "ticket-0")
    assert "default/p has no grant" in caught.value.details()


async def test_two_agents_do_not_share_a_folder(running: RunningAgent) -> None:
    await running.start()
    await running.devices(RESOURCE, 20)
    with pytest.raises(BadInput, match="in use by another process"), Files().only_user(running.settings.state_dir):
        pass


async def test_a_broken_record_stops_the_agent_with_a_sentence(running: RunningAgent) -> None:
    running.settings.state_dir.mkdir()
    running.settings.record.write_text("{")
    await running.start()
    with pytest.raises(Exception, match="cannot read the record"):
        await running.stop()
    running._task = None


def test_settings_that_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no node name"):
        AgentSettings(node="").checked()
    with pytest.raises(BadInput, match=r"libcuda\.so\.1 does not exist; set the directory that contains the driver"):
        AgentSettings(node="n", driver_dir=tmp_path, facade_dir=tmp_path).checked()


async def test_run_refuses_a_kubeconfig_that_leads_nowhere(running: RunningAgent, tmp_path: Path) -> None:
    settings = replace(running.settings, kubeconfig=tmp_path / "absent")
    with pytest.raises(BadInput, match="kubeconfig"):
        await run(settings)
