"""What a node publishes, from facts and configuration."""

import msgspec

from lamina import configuration
from lamina.agent.inventory.builder import build_inventory
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpus import Gpu, Inventory
from lamina.ports.nvml.fake import connect, fake_gpus

FACTS = fake_gpus(3, name="Tesla V100-SXM2-32GB", memory_mib=32510)


def of(text: str, states: list[ObservedGpu], node: str = "node-1") -> Inventory:
    return build_inventory(node, "515.86.01", states, configuration.load(text, "test").for_node(node))


def test_the_defaults() -> None:
    published = of("", [ObservedGpu(facts) for facts in FACTS[:1]])
    assert published == Inventory(
        node="node-1",
        driver="515.86.01",
        gpus=(
            Gpu(
                uuid=FACTS[0].uuid,
                index=0,
                model="Tesla V100-SXM2-32GB",
                memory_mib=32510,
                capacity_mib=32510,
                cores_capacity=100,
                slots=10,
                healthy=True,
            ),
        ),
    )


def test_scaling_and_splitting() -> None:
    text = "hami: {deviceSplitCount: 4, deviceMemoryScaling: 1.5, deviceCoreScaling: 2}"
    (gpu,) = of(text, [ObservedGpu(FACTS[0])]).gpus
    assert (gpu.memory_mib, gpu.capacity_mib, gpu.cores_capacity, gpu.slots) == (32510, 48765, 200, 4)


def test_the_nodes_own_settings_win() -> None:
    text = "{hami: {deviceSplitCount: 4}, nodeconfig: [{name: node-1, devicesplitcount: 2, devicememoryscaling: 3}]}"
    own, other = (of(text, [ObservedGpu(FACTS[0])], node).gpus[0] for node in ("node-1", "node-2"))
    assert (own.slots, own.capacity_mib) == (2, 97530)
    assert (other.slots, other.capacity_mib) == (4, 32510)


def test_filtered_gpus_are_left_out() -> None:
    text = f"nodeconfig: [{{name: node-1, filterdevices: {{uuid: [{FACTS[0].uuid}], index: [2]}}}}]"
    assert [gpu.index for gpu in of(text, [ObservedGpu(facts) for facts in FACTS]).gpus] == [1]


def test_memory_that_cannot_be_reported() -> None:
    unified = msgspec.structs.replace(FACTS[0], memory_mib=None)
    assert of("", [ObservedGpu(unified)]).gpus == ()
    assert of("hami: {preConfiguredDeviceMemory: 65536}", [ObservedGpu(unified)]).gpus[0].memory_mib == 65536


def test_gpus_that_are_partitioned_are_not_shared() -> None:
    capable = msgspec.structs.replace(FACTS[0], mig_capable=True)
    assert of("", [ObservedGpu(capable)]).gpus[0].mig_capable
    partitioned = ObservedGpu(msgspec.structs.replace(capable, mig_enabled=True))
    for text in ("", "hami: {migStrategy: mixed}"):
        assert of(text, [partitioned]).gpus == ()


def test_connections_are_those_among_the_offered_gpus_in_their_order() -> None:
    linked = connect(FACTS, {(0, 1): 210}, others=20)
    rows = [gpu.links for gpu in of("", [ObservedGpu(facts) for facts in linked]).gpus]
    assert rows == [(0, 210, 20), (210, 0, 20), (20, 20, 0)]
    text = "nodeconfig: [{name: node-1, filterdevices: {index: [1]}}]"
    assert [gpu.links for gpu in of(text, [ObservedGpu(facts) for facts in linked]).gpus] == [(0, 20), (20, 0)]


def test_a_sick_gpu_stays_and_says_why() -> None:
    sick, well = of("", [ObservedGpu(FACTS[0], "the driver reported XID 79"), ObservedGpu(FACTS[1])]).gpus
    assert (sick.healthy, sick.reason) == (False, "the driver reported XID 79")
    assert (well.healthy, well.reason) == (True, "")
