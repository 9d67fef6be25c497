"""Labels, annotations and amounts of a node: their values, and that the node is held to them."""

import re
from pathlib import Path

import msgspec
import pytest

from lamina.agent.health import GpuState
from lamina.agent.inventory import inventory
from lamina.agent.marks import features, registers
from lamina.agent.marks.amounts import PLENTY, amounts, spelled
from lamina.agent.marks.features import Sharing, System, labels, sharing
from lamina.agent.marks.keeping import Keeper
from lamina.agent.marks.mig_features import OF_DEVICES, Mig
from lamina.agent.marks.wanted import wanted
from lamina.agent.node_wishes import _read, seen_in
from lamina.agent.offer import Offer
from lamina.agent.tickets import kinds
from lamina.dialects import config, vocabularies
from lamina.model.gpus import Gpu, Inventory, Plain
from lamina.model.kube_quantity import parse_quantity
from lamina.model.sharing import Strategy
from lamina.ports.kube import NODES, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.nvml import GpuFacts
from lamina.ports.nvml.fake import FakeNvml, fake_gpus

NODE_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "node.md").read_text()
SYSTEM = System("515.86.01", (11, 7), "PowerEdge R750")
A100 = GpuFacts("GPU-a", 0, "NVIDIA A100-PCIE-40GB", 40960, mig_capable=True, compute=(8, 0), pci_class=(3, 2))
HAMI_NAMES = [f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores", "priority")]
OF_MIG_AND_FABRIC = {
    f"nvidia.com/{name}" for name in ("mig.strategy", "gpu.clique", *(f"gpu.{each}" for each in OF_DEVICES))
}
T4 = GpuFacts("GPU-t", 1, "Tesla T4", 15360, compute=(7, 5), pci_class=(3, 2))


def label(name: str, *facts: GpuFacts, shared: Sharing = Sharing(), strategy: str = "none") -> str | None:  # noqa: B008
    return labels(facts, SYSTEM, shared, Mig(strategy)).get(f"nvidia.com/{name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cuda.driver.major", "515"), ("cuda.driver.minor", "86"), ("cuda.driver.rev", "01"),
        ("cuda.driver-version.revision", "01"), ("cuda.driver-version.full", "515.86.01"),
        ("cuda.runtime.major", "11"), ("cuda.runtime-version.minor", "7"), ("cuda.runtime-version.full", "11.7"),
        ("gpu.compute.major", "8"), ("gpu.compute.minor", "0"), ("gpu.count", "2"), ("gpu.family", "ampere"),
        ("gpu.machine", "PowerEdge-R750"), ("gpu.memory", "40960"), ("gpu.mode", "compute"),
        ("gpu.product", "NVIDIA-A100-PCIE-40GB"), ("gpu.replicas", "1"), ("gpu.sharing-strategy", "none"),
        ("mig.capable", "true"), ("mig.strategy", None), ("mps.capable", "false"), ("vgpu.present", "false"),
    ],
)  # fmt: skip
def test_s2_3_labels_of_a_node_with_equal_gpus(name: str, value: str | None) -> None:
    assert label(name, A100, msgspec.structs.replace(A100, uuid="GPU-b", index=1)) == value


@pytest.mark.parametrize(
    ("compute", "family"),
    [((1, 3), "tesla"), ((3, 5), "kepler"), ((6, 1), "pascal"), ((7, 0), "volta"), ((7, 5), "turing"),
     ((8, 6), "ampere"), ((8, 9), "ada-lovelace"), ((9, 0), "hopper"), ((10, 0), "blackwell"), ((12, 0), "blackwell"),
     ((13, 0), "rubin"), (None, "undefined")],
)  # fmt: skip
def test_families(compute: tuple[int, int] | None, family: str) -> None:
    assert label("gpu.family", msgspec.structs.replace(A100, compute=compute)) == family


def test_s2_3_s3_5_sharing_is_told_and_marks_the_product_unless_it_is_renamed() -> None:
    sliced, renamed = Sharing("time-slicing", 10), Sharing("mps", 5, renamed=True)
    assert label("gpu.product", A100, shared=sliced) == "NVIDIA-A100-PCIE-40GB-SHARED"
    assert label("gpu.replicas", A100, shared=sliced) == "10"
    assert label("gpu.sharing-strategy", A100, shared=sliced) == "time-slicing"
    assert label("gpu.product", A100, shared=renamed) == "NVIDIA-A100-PCIE-40GB"
    assert label("gpu.replicas", A100, shared=renamed) == "5"
    assert label("mps.capable", A100, shared=renamed) == "true"
    assert label("mig.strategy", A100, strategy="mixed") == "mixed"


def test_several_models_are_told_by_the_one_of_most_gpus() -> None:
    second = msgspec.structs.replace(T4, uuid="GPU-u", index=2)
    assert (label("gpu.product", A100, T4, second), label("gpu.count", A100, T4, second)) == ("Tesla-T4", "2")
    assert (label("gpu.product", A100, T4), label("gpu.count", A100, T4)) == ("NVIDIA-A100-PCIE-40GB", "1")


def test_values_are_what_kubernetes_accepts() -> None:
    odd = msgspec.structs.replace(A100, name=" (R) Odd/Name! " + "x" * 80 + "-")
    value = label("gpu.product", odd, shared=Sharing("time-slicing", 2))
    assert value is not None
    assert re.fullmatch(r"R-OddName-x+-SHARED", value)
    assert len(value) <= 63


def test_the_page_lists_every_label() -> None:
    listed = {
        f"nvidia.com/{name}"
        for row in re.findall(r"^\| (`[^|]*) \|", NODE_PAGE, re.M)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert listed >= features.LABELS


def gpu(uuid: str, index: int, **more: object) -> Gpu:
    return msgspec.convert(
        {"uuid": uuid, "index": index, "model": "Tesla V100-SXM2-32GB", "memoryMiB": 32768, "capacityMiB": 65536}
        | more,
        Gpu,
    )


def test_sharing_is_read_from_what_the_node_offers() -> None:
    plain = {"plain": "nvidia.com/gpu.shared"}
    two = (gpu("GPU-0", 0, **plain), gpu("GPU-1", 1, **plain))
    offered = Inventory(node="n", gpus=two, plain=(Plain("nvidia.com/gpu.shared", 10, 10, Strategy.TIME_SLICING),))
    assert sharing(offered) == Sharing("time-slicing", 10, renamed=True)
    mps = tuple(msgspec.structs.replace(one, plain="nvidia.com/gpu") for one in two)
    plain_mps = (Plain("nvidia.com/gpu", 8, 4, Strategy.MPS),)
    assert sharing(Inventory(node="n", gpus=mps, plain=plain_mps)) == Sharing("mps", 4)
    assert sharing(Inventory(node="n", gpus=(gpu("GPU-0", 0),))) == Sharing()


def test_the_registers_are_byte_for_byte_those_of_hami_and_volcano() -> None:
    found = Inventory(node="n", gpus=(gpu("GPU-0", 0), gpu("GPU-1", 1, numa=1, healthy=False, reason="XID 79")))
    assert registers.hami(found) == (
        '[{"id":"GPU-0","count":10,"devmem":65536,"devcore":100,"type":"NVIDIA-Tesla V100-SXM2-32GB",'
        '"mode":"hami-core","health":true},'
        '{"id":"GPU-1","index":1,"count":10,"devmem":65536,"devcore":100,"type":"NVIDIA-Tesla V100-SXM2-32GB",'
        '"numa":1,"mode":"hami-core"}]'
    )
    assert registers.volcano(found) == (
        "GPU-0,10,65536,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:"
        "GPU-1,10,65536,NVIDIA-Tesla V100-SXM2-32GB,false,hami-core:"
    )


@pytest.mark.parametrize(
    ("told", "mode"),
    [
        ({"modes": ["quota", "mig"]}, "hami-core"),
        ({"modes": ["mig", "quota"]}, "mig"),
        ({"modes": ["quota", "mig"], "mode": "mig"}, "mig"),
        ({"modes": ["mig", "quota"], "mode": "quota"}, "hami-core"),
    ],
)
def test_s1_5_the_registers_tell_which_gpus_are_cut_for_grants(told: dict[str, object], mode: str) -> None:
    found = Inventory(node="n", gpus=(gpu("GPU-0", 0, **told),))
    assert f'"mode":"{mode}"' in registers.hami(found)
    assert registers.volcano(found).endswith(f",{mode}:")


def test_s1_1_amounts_are_the_sums_of_the_node_and_do_not_shrink_with_sickness() -> None:
    eight = tuple(gpu(f"GPU-{n}", n, healthy=n > 0, capacityMiB=11178) for n in range(8))
    of = amounts(Inventory(node="n", gpus=eight), config.DEFAULT)
    sums = {"volcano.sh/vgpu-memory": 89424, "volcano.sh/vgpu-cores": 800, "volcano.sh/gpu-core.percentage": 800}
    assert {name: amount for name, amount in of.items() if amount != PLENTY} == sums
    text = "volcano: {gpuMemoryFactor: 1024}\nnode: {amounts: [volcano, hami]}"
    of = amounts(Inventory(node="n", gpus=eight), config.load(text, "test"))
    assert (of["volcano.sh/vgpu-memory"], of["nvidia.com/gpumem"], of["nvidia.com/gpucores"]) == (87, 89424, 800)
    assert of["volcano.sh/gpu-core.percentage"] == PLENTY


@pytest.mark.parametrize(
    "text",
    ["", "node: {amounts: []}", "node: {amounts: [hami]}", "hami: {resourceMemoryName: example.com/mem}",
     "volcano: {resourceMemoryPercentageName: example.com/percent}"],
)  # fmt: skip
def test_every_name_that_is_no_ticket_has_an_amount_and_no_ticket_has(text: str) -> None:
    """Kube-scheduler looks again at a pod only if a changed node has all of its names, and kubelets may, too."""
    settings = config.load(text, "test")
    of = amounts(Inventory(node="n", gpus=(gpu("GPU-0", 0),)), settings)
    assert of.keys() == {name for each in vocabularies(settings) for name in each.all} - {
        each.ticket for each in vocabularies(settings)
    }
    assert min(of.values()) > 0


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (1, "1"), (999, "999"), (1000, "1k"), (1500, "1500"), (40000, "40k"), (2_000_000, "2M"),
     (1_000_100, "1000100"), (PLENTY, "2147483647")],
)  # fmt: skip
def test_amounts_are_spelled_as_the_api_server_spells_them(amount: int, text: str) -> None:
    """Else they would differ for ever and be written each time."""
    assert spelled(amount) == text
    assert parse_quantity(text, where="here").whole == amount


class Kept:
    """A node in a fake cluster, its offer, and the keeper."""

    def __init__(self, text: str = "", count: int = 2) -> None:
        self.kube, self.time = FakeKube(), 1000.0
        self.config = config.load(text, "test")
        self.nvml = FakeNvml(fake_gpus(count))
        self.offer = Offer("n", self.config.for_node("n"), kinds(self.config), selected=True)
        self.keeper = Keeper(
            kube=self.kube, node="n", config=self.config, offer=self.offer, nvml=self.nvml, now=lambda: self.time
        )

    async def node(self) -> Object:
        return await self.kube.get(NODES, "n")

    async def keep(self) -> Object:
        """What the watch told, one round of keeping, and the node after it."""
        self.keeper.seen.set(seen_in(_read(await self.node())))
        await self.keeper.keep()
        return await self.node()

    async def started(self, **meta: object) -> Object:
        await self.kube.create(NODES, {"metadata": {"name": "n", **meta}, "status": {"capacity": {"cpu": "8"}}})
        self.offer.observed("515.86.01", tuple(GpuState(facts) for facts in self.nvml.present))
        return await self.keep()


async def test_all_marks_are_written_once_and_then_left() -> None:
    kept = Kept()
    node = await kept.started(labels={"own": "kept"})
    meta = node["metadata"]
    assert meta["labels"]["own"] == "kept"
    assert meta["labels"].keys() - {"own"} == features.LABELS - OF_MIG_AND_FABRIC
    assert meta["labels"]["nvidia.com/gfd.timestamp"] == "1000"
    assert meta["annotations"].keys() == {registers.HAMI, registers.VOLCANO}
    assert node["status"]["capacity"] == {
        "cpu": "8",
        "volcano.sh/vgpu-memory": "65536",
        "volcano.sh/vgpu-cores": "200",
        "volcano.sh/gpu-core.percentage": "200",
        **dict.fromkeys([*HAMI_NAMES, "volcano.sh/vgpu-memory-percentage"], str(PLENTY)),
    }
    assert node["status"]["allocatable"]["volcano.sh/vgpu-memory"] == "65536"
    kept.time += 60
    assert await kept.keep() == node


async def test_what_others_change_or_kubelet_resets_comes_back() -> None:
    kept = Kept()
    before = await kept.started()
    kept.time += 60
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
    kept.offer.select(False)
    node = await kept.keep()
    assert node["metadata"]["labels"] == {"own": "kept"}
    assert not node["metadata"].get("annotations")
    assert node["status"] == {"capacity": {"cpu": "8"}, "allocatable": {}}


async def test_amounts_of_others_are_left_where_the_node_offers_nothing() -> None:
    kept = Kept()
    await kept.started()
    kept.offer.select(False)
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
    kept = Kept("node: {labels: false, registers: [volcano], amounts: []}")
    node = await kept.started(labels={"nvidia.com/gpu.count": "7"})
    assert node["metadata"]["labels"] == {"nvidia.com/gpu.count": "7"}
    assert node["metadata"]["annotations"].keys() == {registers.VOLCANO}
    assert {*node["status"]["capacity"].values()} == {"8", str(PLENTY)}


def test_gpus_that_are_given_out_without_grants_are_in_no_register_and_no_sum() -> None:
    plain = (gpu("GPU-0", 0, plain="nvidia.com/gpu"),)
    offered = Inventory(node="n", gpus=plain, plain=(Plain("nvidia.com/gpu", 4, 4, Strategy.TIME_SLICING),))
    marks = wanted(offered, (msgspec.structs.replace(A100, uuid="GPU-0"),), SYSTEM, config.DEFAULT)
    assert marks.labels["nvidia.com/gpu.replicas"] == "4"
    assert (marks.annotations, marks.amounts) == ({}, {})


def test_the_inventory_of_sick_gpus_still_labels_the_node() -> None:
    states = [GpuState(facts, "the GPU does not answer NVML") for facts in fake_gpus(2)]
    found = inventory("n", "515.86.01", states, config.DEFAULT.for_node("n"))
    assert amounts(found, config.DEFAULT)["volcano.sh/vgpu-cores"] == 200
