"""Labels, annotations and amounts of a node: which there are, and that the node keeps them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina import configuration
from lamina.agent.compat.node_watch import _trim, observed_node
from lamina.agent.compat.reconciler import (
    PLENTY,
    CompatMetadata,
    CompatReconciler,
    desired_amounts,
    desired_metadata,
    format_quantity,
    metadata_patch,
)
from lamina.agent.inventory.builder import build_inventory
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.core.gpus import Gpu, Inventory, NativeResource
from lamina.core.quantities import parse_quantity
from lamina.core.sharing import Strategy
from lamina.dialects import resource_names
from lamina.dialects.hami import compatibility as hami
from lamina.dialects.nvidia import feature_labels, node_gpus
from lamina.dialects.volcano import compatibility as volcano
from lamina.ports.clock import FakeClock
from lamina.ports.host import FakeHost
from lamina.ports.kube import NODES, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.nvml.fake import FakeNvml, fake_gpus
from tests.agent.node import fake_context, node_offer
from tests.dialects.nodes import A100, described

HAMI_NAMES = [f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores", "priority")]
OF_MIG_AND_FABRIC = {
    f"nvidia.com/{name}" for name in ("mig.strategy", "gpu.clique", *(f"gpu.{each}" for each in node_gpus.OF_DEVICES))
}


def gpu(uuid: str, index: int, **more: Any) -> Gpu:
    sizes = {"memory_mib": 32768, "capacity_mib": 65536} | more
    return Gpu(uuid=uuid, index=index, model="Tesla V100-SXM2-32GB", **sizes)


def test_the_registers_are_byte_for_byte_those_of_hami_and_volcano() -> None:
    found = Inventory(node="n", gpus=(gpu("GPU-0", 0), gpu("GPU-1", 1, numa=1, healthy=False, reason="XID 79")))
    assert hami.write_register(found) == (
        '[{"id":"GPU-0","count":10,"devmem":65536,"devcore":100,"type":"NVIDIA-Tesla V100-SXM2-32GB",'
        '"mode":"hami-core","health":true},'
        '{"id":"GPU-1","index":1,"count":10,"devmem":65536,"devcore":100,"type":"NVIDIA-Tesla V100-SXM2-32GB",'
        '"numa":1,"mode":"hami-core"}]'
    )
    assert volcano.write_register(found) == (
        "GPU-0,10,65536,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:"
        "GPU-1,10,65536,NVIDIA-Tesla V100-SXM2-32GB,false,hami-core:"
    )


@pytest.mark.parametrize(
    ("reported", "mode"),
    [
        ({"modes": ["quota", "mig"]}, "hami-core"),
        ({"modes": ["mig", "quota"]}, "mig"),
        ({"modes": ["quota", "mig"], "mode": "mig"}, "mig"),
        ({"modes": ["mig", "quota"], "mode": "quota"}, "hami-core"),
    ],
)
def test_s1_5_the_registers_name_gpus_that_are_partitioned_for_grants(reported: dict[str, object], mode: str) -> None:
    found = Inventory(node="n", gpus=(gpu("GPU-0", 0, **reported),))
    assert f'"mode":"{mode}"' in hami.write_register(found)
    assert volcano.write_register(found).endswith(f",{mode}:")


def test_s1_1_amounts_are_the_sums_of_the_node_and_do_not_shrink_with_sickness() -> None:
    eight = tuple(gpu(f"GPU-{n}", n, healthy=n > 0, capacity_mib=11178) for n in range(8))
    of = desired_amounts(Inventory(node="n", gpus=eight), configuration.DEFAULT)
    sums = {"volcano.sh/vgpu-memory": 89424, "volcano.sh/vgpu-cores": 800, "volcano.sh/gpu-core.percentage": 800}
    assert {name: amount for name, amount in of.items() if amount != PLENTY} == sums
    text = "volcano: {gpuMemoryFactor: 1024}\ncompatibility: {resources: [volcano, hami]}"
    of = desired_amounts(Inventory(node="n", gpus=eight), configuration.load(text, "test"))
    assert (of["volcano.sh/vgpu-memory"], of["nvidia.com/gpumem"], of["nvidia.com/gpucores"]) == (87, 89424, 800)
    assert of["volcano.sh/gpu-core.percentage"] == PLENTY


@pytest.mark.parametrize(
    "text",
    ["", "compatibility: {resources: []}", "compatibility: {resources: [hami]}",
     "hami: {resourceMemoryName: example.com/mem}",
     "volcano: {resourceMemoryPercentageName: example.com/percent}"],
)  # fmt: skip
def test_every_name_that_is_no_ticket_has_an_amount_and_no_ticket_has(text: str) -> None:
    """Kube-scheduler looks again at a pod only if a changed node has all of its names, and kubelets may, too."""
    settings = configuration.load(text, "test")
    of = desired_amounts(Inventory(node="n", gpus=(gpu("GPU-0", 0),)), settings)
    assert of.keys() == {name for each in resource_names(settings) for name in each.all} - {
        each.ticket for each in resource_names(settings)
    }
    assert min(of.values()) > 0


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (1, "1"), (999, "999"), (1000, "1k"), (1500, "1500"), (40000, "40k"), (2_000_000, "2M"),
     (1_000_100, "1000100"), (PLENTY, "2147483647")],
)  # fmt: skip
def test_amounts_are_spelled_as_the_api_server_spells_them(amount: int, text: str) -> None:
    """Else they would differ for ever and be written each time."""
    assert format_quantity(amount) == text
    assert parse_quantity(text, where="here").whole == amount


class Kept:
    """A node in a fake cluster, its offer, and the keeper."""

    def __init__(self, text: str = "", count: int = 2) -> None:
        self.kube = FakeKube()
        self.config = configuration.load(text, "test")
        self.nvml = FakeNvml(fake_gpus(count))
        self.clock = FakeClock(1000.0)
        kinds = ticket_kinds(self.config)
        self.offer = node_offer("n", settings=self.config.for_node("n"), ticket_kinds=kinds)
        self.observed: Observable[ObservedNode | None] = Observable(None)
        node = fake_context(Path("/nowhere"), "n", config=self.config, kube=self.kube, nvml=self.nvml, clock=self.clock)
        self.keeper = CompatReconciler(node, self.offer, self.observed, FakeHost())

    async def node(self) -> Object:
        return await self.kube.get(NODES, "n")

    async def keep(self) -> Object:
        """What the watch reported, one round of keeping, and the node after it."""
        self.observed.set(observed_node(_trim(await self.node())))
        await self.keeper.reconcile()
        return await self.node()

    async def started(self, **meta: object) -> Object:
        await self.kube.create(NODES, {"metadata": {"name": "n", **meta}, "status": {"capacity": {"cpu": "8"}}})
        self.offer.update(driver="515.86.01", observed=tuple(ObservedGpu(facts) for facts in self.nvml.present))
        return await self.keep()


async def test_labels_and_annotations_are_written_once() -> None:
    kept = Kept()
    node = await kept.started(labels={"own": "kept"})
    meta = node["metadata"]
    assert meta["labels"]["own"] == "kept"
    assert meta["labels"].keys() - {"own"} == feature_labels.LABELS - OF_MIG_AND_FABRIC
    assert meta["labels"]["nvidia.com/gfd.timestamp"] == "1000"
    assert meta["annotations"].keys() == {hami.REGISTER, volcano.REGISTER}
    amounts = {
        "cpu": "8",
        "volcano.sh/vgpu-memory": "65536",
        "volcano.sh/vgpu-cores": "200",
        "volcano.sh/gpu-core.percentage": "200",
        **dict.fromkeys([*HAMI_NAMES, "volcano.sh/vgpu-memory-percentage"], str(PLENTY)),
    }
    assert node["status"]["capacity"].items() >= amounts.items()
    assert node["status"]["capacity"].keys() - {"cpu"} == {
        name for names in resource_names(kept.config) for name in names.ignored_by_scheduler
    }
    assert node["status"]["allocatable"]["volcano.sh/vgpu-memory"] == "65536"
    await kept.clock.advance(60)
    assert await kept.keep() == node


async def test_what_others_change_or_kubelet_resets_comes_back() -> None:
    kept = Kept()
    before = await kept.started()
    await kept.clock.advance(60)
    await kept.kube.patch(
        NODES, "n", {"metadata": {"labels": {"nvidia.com/gpu.count": "9", "nvidia.com/gpu.family": None}}}
    )
    reset = {"status": {"allocatable": {"volcano.sh/vgpu-cores": "0"}, "capacity": {"volcano.sh/vgpu-cores": None}}}
    await kept.kube.patch(NODES, "n", reset, subresource="status")
    after = await kept.keep()
    assert after["status"] == before["status"]
    stamped = before["metadata"]["labels"] | {"nvidia.com/gfd.timestamp": "1060"}
    assert after["metadata"]["labels"] == stamped


async def test_a_node_that_offers_nothing_carries_nothing() -> None:
    kept = Kept()
    await kept.started(labels={"own": "kept"})
    kept.offer.update(selected=False)
    node = await kept.keep()
    assert node["metadata"]["labels"] == {"own": "kept"}
    assert not node["metadata"].get("annotations")
    assert node["status"] == {"capacity": {"cpu": "8"}, "allocatable": {}}


async def test_amounts_of_others_are_left_where_the_node_offers_nothing() -> None:
    kept = Kept()
    await kept.started()
    kept.offer.update(selected=False)
    await kept.kube.patch(NODES, "n", {"status": {"capacity": {"nvidia.com/gpumem": "7"}}}, subresource="status")
    node = await kept.keep()
    assert node["status"]["capacity"] == {"cpu": "8", "nvidia.com/gpumem": "7"}


async def test_before_the_driver_has_answered_nothing_is_touched() -> None:
    kept = Kept()
    await kept.kube.create(NODES, {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.count": "2"}}})
    assert (await kept.keep())["metadata"]["labels"] == {"nvidia.com/gpu.count": "2"}


async def test_labels_of_gfd_itself_are_left_to_it() -> None:
    kept = Kept()
    node = await kept.started(
        labels={"nvidia.com/gpu.count": "7"},
        annotations={"nfd.node.kubernetes.io/feature-labels": "cpu-model,nvidia.com/gpu.count,nvidia.com/gpu.memory"},
    )
    assert node["metadata"]["labels"]["nvidia.com/gpu.count"] == "7"
    assert "nvidia.com/gpu.memory" not in node["metadata"]["labels"]
    assert node["metadata"]["labels"]["nvidia.com/gpu.family"] == "undefined"


async def test_what_is_not_wanted_is_not_written() -> None:
    kept = Kept("compatibility: {labels: false, annotations: [volcano], resources: []}")
    node = await kept.started(labels={"nvidia.com/gpu.count": "7"})
    assert node["metadata"]["labels"] == {"nvidia.com/gpu.count": "7"}
    assert node["metadata"]["annotations"].keys() == {volcano.REGISTER}
    assert {*node["status"]["capacity"].values()} == {"8", str(PLENTY)}


def test_native_devices_are_in_no_register_and_no_sum() -> None:
    plain = (gpu("GPU-0", 0, native_resource="nvidia.com/gpu"),)
    offered = Inventory(
        node="n", gpus=plain, native_resources=(NativeResource("nvidia.com/gpu", 4, 4, Strategy.TIME_SLICING),)
    )
    node = described(msgspec.structs.replace(A100, uuid="GPU-0"))
    metadata = desired_metadata(msgspec.structs.replace(node, inventory=offered), configuration.DEFAULT)
    assert metadata.labels["nvidia.com/gpu.replicas"] == "4"
    assert (metadata.annotations, metadata.amounts) == ({}, {})


def test_the_inventory_of_sick_gpus_still_labels_the_node() -> None:
    states = [ObservedGpu(facts, "the GPU does not answer NVML") for facts in fake_gpus(2)]
    found = build_inventory("n", "515.86.01", states, configuration.DEFAULT.for_node("n"))
    assert desired_amounts(found, configuration.DEFAULT)["volcano.sh/vgpu-cores"] == 200


def test_labels_of_profiles_that_are_gone_are_removed_and_those_of_others_left() -> None:
    there = {"nvidia.com/mig-3g.20gb.count": "2", "nvidia.com/mig-1g.5gb.me.engines.ofa": "1",
             "nvidia.com/mig.config": "all-disabled", "nvidia.com/mig-1g.5gb.own": "x"}  # fmt: skip
    patch = metadata_patch(CompatMetadata(), ObservedNode(uid="u", labels=there), labelling=True, now=0)
    assert patch is not None
    assert patch["metadata"]["labels"] == dict.fromkeys(list(there)[:2])
    assert metadata_patch(CompatMetadata(), ObservedNode(uid="u", labels=there), labelling=False, now=0) is None


COUNT, STAMP = "nvidia.com/gpu.count", "nvidia.com/gfd.timestamp"
STAMPED = CompatMetadata(labels={COUNT: "2"}, timestamps=frozenset({STAMP}))
UNSTAMPED = CompatMetadata(labels={COUNT: "2"})


@pytest.mark.parametrize(
    ("desired", "observed", "changes"),
    [
        (STAMPED, {}, {COUNT: "2", STAMP: "7"}),
        (STAMPED, {COUNT: "3", STAMP: "1"}, {COUNT: "2", STAMP: "7"}),
        (STAMPED, {COUNT: "2"}, {STAMP: "7"}),
        (STAMPED, {COUNT: "2", STAMP: "1"}, None),
        (UNSTAMPED, {}, {COUNT: "2"}),
        (UNSTAMPED, {COUNT: "2", STAMP: "1"}, {STAMP: None}),
        (UNSTAMPED, {COUNT: "2"}, None),
        (CompatMetadata(), {COUNT: "2", STAMP: "1"}, {COUNT: None, STAMP: None}),
    ],
)
def test_a_timestamp_changes_with_the_labels_and_only_where_it_is_wanted(
    desired: CompatMetadata, observed: dict[str, str], changes: dict[str, str | None] | None
) -> None:
    patch = metadata_patch(desired, ObservedNode(uid="u", labels=observed), labelling=True, now=7.9)
    assert patch == (None if changes is None else {"metadata": {"uid": "u", "labels": changes}})


def test_a_timestamp_of_feature_discovery_itself_is_left_alone() -> None:
    annotations = {feature_labels.NFD_ANNOTATION: STAMP}
    patch = metadata_patch(STAMPED, ObservedNode(uid="u", annotations=annotations), labelling=True, now=7)
    assert patch == {"metadata": {"uid": "u", "labels": {COUNT: "2"}}}


@pytest.mark.parametrize(("stamped", "described_by"), [(True, {STAMP}), (False, set())])
def test_s3_1_nvidias_configuration_decides_on_the_timestamp(stamped: bool, described_by: set[str]) -> None:
    desired = desired_metadata(described(A100, timestamps=stamped), configuration.DEFAULT)
    assert desired.timestamps == described_by
