"""What a node offers to claims, checked by the lab's API server and allocated by its scheduler."""

from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpu_facts import GpuFacts, MigInstanceFacts
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MigDevice
from lamina.dra.claims import read_claim
from lamina.dra.names import DRIVER, HAMI_DRIVER, device_classes, slice_name
from lamina.dra.offers import DriverVersions, OfferedGpu, offered_devices, pci_bus_id, semantic_version, shared_counters
from lamina.dra.partitions import PartitionOptions
from lamina.dra.slices import generation, node_slices
from lamina.errors import NotYet
from lamina.ports.nvml.fake import fake_gpus
from lamina_lab.api.schema.device_validation import resource_slice
from tests.lab_scheduler.device_objects import AllocatedDevices, capacity, claim, device_class, request

CARD = MIG_CARDS["A100-40GB"]
VERSIONS = DriverVersions("580.65.06", (13, 0))
FACTS = [structs.replace(each, compute=(7, 0), numa=0, minor=each.index + 4) for each in fake_gpus(3)]


def gpus(**changes: Any) -> list[OfferedGpu]:
    return [OfferedGpu(facts=each, bus_id="00000000:0A:00.0", **changes) for each in FACTS]


def partitioned(facts: GpuFacts = FACTS[0]) -> OfferedGpu:
    made = [("1g.5gb", 0), ("1g.5gb+me", 1), ("2g.10gb", 2)]
    devices = tuple(
        MigDevice(facts.uuid, MigInstanceFacts(number, name, start, f"MIG-{number}", number), CARD.profile(name))
        for number, (name, start) in enumerate(made)
    )
    return OfferedGpu(facts=structs.replace(facts, mig_enabled=True), mig=devices)


PARTITIONED = partitioned()
ON_DEMAND = OfferedGpu(facts=FACTS[1], options=PartitionOptions(card=CARD, profiles=CARD.profiles))


def slices_of(offered: list[OfferedGpu]) -> list[dict[str, Any]]:
    documents = [each.document for each in offered_devices(offered, VERSIONS)]
    return node_slices("node-0", DRIVER, documents, [], shared_counters(offered))


def values(document: Any) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in document["attributes"].items()}


def test_a_gpu_has_the_attributes_that_old_and_new_manifests_name() -> None:
    (*_, device) = offered_devices(gpus(), VERSIONS)
    found = values(device.document)
    assert (device.name, device.kind, device.memory_mib) == ("gpu-4", "gpu", 32768)
    expected = {
        "type": "gpu", "uuid": FACTS[0].uuid, "productName": "Tesla V100-SXM2-32GB", "brand": "Tesla",
        "architecture": "Volta", "cudaComputeCapability": "7.0.0", "driverVersion": "580.65.6", "minor": 4, "index": 0,
        "cudaDriverVersion": "13.0.0", "pcieBusID": "0000:0a:00.0", "resource.kubernetes.io/pciBusID": "0000:0a:00.0",
        "resource.kubernetes.io/numaNode": 0, f"{HAMI_DRIVER}/type": "hami-gpu",
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("offered", [gpus(), gpus(reason="the driver reported XID 79"), [partitioned()], []])
def test_the_api_server_takes_the_slices(offered: list[OfferedGpu]) -> None:
    found = slices_of(offered)
    assert found and [resource_slice(each) for each in found] == [[]]


def test_shares_fill_one_gpu_before_the_next_and_a_claim_without_an_amount_takes_all() -> None:
    cluster = AllocatedDevices(slices_of(gpus()[:2]))
    part = request(capacity=capacity(memory="20Gi"))
    assert cluster.devices(claim("a", part)) == ["gpu-5"]
    assert cluster.devices(claim("b", part)) == ["gpu-4"]
    assert cluster.devices(claim("c", request(capacity=capacity(memory="8Gi", cores="30")))) == ["gpu-5"]
    assert cluster.devices(claim("d", request())) is None
    cluster.free("b")
    assert cluster.devices(claim("e", request())) == ["gpu-4"]
    assert cluster.devices(claim("f", request(capacity=capacity(memory="1Mi")))) == ["gpu-5"]


def test_the_allocated_claim_is_read_back_with_its_amounts() -> None:
    cluster = AllocatedDevices(slices_of(gpus()))
    wanted = claim("a", request("one", capacity=capacity(memory="4Gi", cores="30")), request("two"))
    assert cluster.allocate(wanted) is not None
    (allocated,) = cluster.allocated
    found = read_claim(allocated, DRIVER, "node-0")
    one, two = found.devices
    assert (one.device, one.memory_mib, one.cores) == ("gpu-6", 4096, 30)
    assert (two.device, two.memory_mib, two.cores) == ("gpu-5", 32768, 0)
    assert one.share_id and one.share_id != two.share_id
    with pytest.raises(NotYet, match=r"has no device of gpu\.nvidia\.com on node-1"):
        read_claim(allocated, DRIVER, "node-1")


@pytest.mark.parametrize("others", [[], [PARTITIONED], [ON_DEMAND], [PARTITIONED, ON_DEMAND]])
@pytest.mark.parametrize("name", [each["metadata"]["name"] for each in device_classes(DRIVER)])
def test_each_class_is_evaluated_for_every_device_and_selects_its_own(name: str, others: list[OfferedGpu]) -> None:
    offered = [*others, OfferedGpu(facts=FACTS[2])]
    cluster = AllocatedDevices(slices_of(offered), device_classes(DRIVER))
    kind = "mig" if name.startswith("mig.") else "gpu"
    expected = {each.name for each in offered_devices(offered, VERSIONS) if each.kind == kind}
    amounts = {"capacity": capacity(memory="32Gi")} if kind == "gpu" else {}
    found = [cluster.devices(claim(f"claim-{at}", request("one", name, **amounts))) for at in range(9)]
    assert {device for devices in found if devices for device in devices} <= expected
    assert (found[0] is None) == (not expected)
    assert found[-1] is None or kind == "mig"


def test_a_partitioned_gpu_is_offered_by_its_mig_devices_only() -> None:
    devices = offered_devices([partitioned()], VERSIONS)
    assert [each.name for each in devices] == [
        "gpu-4-mig-1g5gb-19-0", "gpu-4-mig-1g5gb-me-20-1", "gpu-4-mig-2g10gb-14-2",
    ]  # fmt: skip
    assert [(each.kind, each.uuid, each.gpu) for each in devices][2] == ("mig", "MIG-2", FACTS[0].uuid)
    assert values(devices[2].document)["parentUUID"] == FACTS[0].uuid
    assert {"memorySlice2", "memorySlice3"} < set(devices[2].document["capacity"])
    cluster = AllocatedDevices(slices_of([partitioned()]), [device_class("mig.nvidia.com", "mig")])
    profile = "device.attributes['gpu.nvidia.com'].profile == '2g.10gb'"
    wanted = claim("a", request("mig", "mig.nvidia.com", profile))
    assert cluster.devices(wanted) == ["gpu-4-mig-2g10gb-14-2"]
    assert cluster.devices(claim("b", request("mig", "mig.nvidia.com", profile))) is None


@pytest.mark.parametrize(
    ("reason", "taint"),
    [
        ("the driver reported XID 79", {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}),
        ("the GPU does not answer NVML", {"key": "gpu.nvidia.com/gpu-lost", "effect": "NoSchedule"}),
    ],
)
def test_an_unhealthy_gpu_has_a_taint_and_is_not_allocated(reason: str, taint: dict[str, str]) -> None:
    offered = [OfferedGpu(facts=FACTS[0], reason=reason), OfferedGpu(facts=FACTS[1])]
    assert offered_devices(offered, VERSIONS)[1].document["taints"] == [taint]
    assert AllocatedDevices(slices_of(offered)).devices(claim("a", request())) == ["gpu-5"]


def test_gpus_that_claims_have_come_first() -> None:
    found = offered_devices(gpus(), VERSIONS, used={FACTS[2].uuid})
    assert [each.name for each in found] == ["gpu-6", "gpu-5", "gpu-4"]
    found = offered_devices(gpus(), VERSIONS, used={FACTS[0].uuid})
    assert [each.name for each in found] == ["gpu-4", "gpu-6", "gpu-5"]


def test_a_gpu_of_unknown_memory_is_not_offered() -> None:
    assert offered_devices([OfferedGpu(facts=structs.replace(FACTS[0], memory_mib=None))], VERSIONS) == []


def test_the_generation_grows_only_with_a_change() -> None:
    devices = [{"name": f"gpu-{number}"} for number in range(70)]
    first = node_slices("node-0", DRIVER, devices, [])
    assert [(generation(each), len(each["spec"]["devices"])) for each in first] == [(1, 64), (1, 6)]
    assert first[0]["spec"]["pool"]["resourceSliceCount"] == 2
    assert node_slices("node-0", DRIVER, devices, first) == first
    assert node_slices("node-0", DRIVER, devices, first[1:]) == first
    changed = node_slices("node-0", DRIVER, devices[1:], first)
    assert {generation(each) for each in changed} == {2}
    half_written = [changed[0], first[1]]
    assert node_slices("node-0", DRIVER, devices[1:], half_written) == changed
    assert {generation(each) for each in node_slices("node-0", DRIVER, devices, half_written)} == {3}


def test_the_slices_of_a_long_node_name_have_names_of_their_own() -> None:
    long = ["n" * 240 + str(number) for number in range(2)]
    names = {node_slices(node, DRIVER, [], [])[0]["metadata"]["name"] for node in long}
    assert len(names) == 2 and all(len(name) < 253 for name in names)
    tail = f"-{DRIVER}-0"
    longest = "n" * (200 - len(tail))
    assert slice_name(longest, DRIVER, 0) == longest + tail, "of 200 characters"
    assert not slice_name(f"{longest}n", DRIVER, 0).startswith(longest), "of one more"


def test_versions_and_addresses_have_the_form_of_kubernetes() -> None:
    assert [semantic_version(each) for each in ("580.65.06", "535.1", "")] == ["580.65.6", "535.1.0", "0.0.0"]
    assert [pci_bus_id(each) for each in ("00000000:0A:00.0", "0001:0a:00.0", "odd")] == [
        "0000:0a:00.0",
        "0001:0a:00.0",
        "",
    ]
