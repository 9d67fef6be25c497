"""What the agent tells Prometheus, against what was granted, held and measured."""

import asyncio
import contextlib
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from lamina.agent.containers import write_limits
from lamina.agent.health import GpuState
from lamina.agent.metrics.looking import Rates
from lamina.agent.metrics.serving import Page, serving
from lamina.agent.offer import Offer
from lamina.agent.prepare import Preparer
from lamina.agent.record import Bound, Instance
from lamina.agent.tickets import kinds
from lamina.dialects.config import DEFAULT
from lamina.enforcement import layout
from lamina.model.gpus import MigInstance, Mode
from lamina.model.mps import MpsDaemon, MpsState
from lamina.model.quantities import MIB
from lamina.ports import nvml
from lamina.ports.listening import Address
from lamina.ports.nvml import GpuProcess, GpuReading
from lamina.ports.nvml.fake import FakeNvml
from tests.agent.node import FACTS, GPU, KIND, Node, container, share

Series = dict[tuple[str, frozenset[str]], float]


class Told:
    """A node, its NVML, and the page that tells of both."""

    def __init__(self, root: Path, named: tuple[str, ...] = ("hami", "dcgm", "cce")) -> None:
        self.node = Node(root)
        self.node.preparer = Preparer(
            node=self.node.name,
            kind=KIND,
            record=self.node.record,
            pod_resources=self.node.kubelet,
            cluster=self.node.cluster,
            gpus=lambda: self.node.gpus,
            places=self.node.places,
            files=self.node.files,
            write_limits=write_limits,
            on_demand=self.node.on_demand,
            sweep=self.node.releaser.sweep,
        )
        self.nvml = FakeNvml(FACTS)
        self.offer = Offer(self.node.name, DEFAULT.for_node(self.node.name), kinds(DEFAULT), selected=True)
        self.offer.observed("515.86.01", tuple(GpuState(facts) for facts in FACTS))
        self.page = Page(
            self.node.name,
            self.offer,
            self.node.record,
            self.node.places,
            self.node.files,
            self.nvml,
            self.node.clock,
            named=named,
            proc=root / "proc",
        )
        self.proc = root / "proc"

    async def series(self, *containing: str) -> Series:
        """The series whose labels have all these values."""
        families = text_string_to_metric_families((await self.page.text()).decode())
        found = {(s.name, frozenset(s.labels.values())): s.value for family in families for s in family.samples}
        return {key: value for key, value in found.items() if set(containing) <= key[1]}

    async def value(self, name: str, *containing: str) -> float:
        (found,) = [value for (each, _), value in (await self.series(*containing)).items() if each == name]
        return found

    async def runs(self, pod: str, *shares: object) -> Path:
        """Prepare the container `main` with these shares; its folder."""
        uid = await self.node.pod(pod, container("main", *shares))  # type: ignore[arg-type]
        await self.node.admit(pod, {"main": ["ticket-" + pod]})
        await self.node.preparer.prepare(["ticket-" + pod])
        return self.node.places.containers / f"{uid}_main"


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


async def test_a_container_that_does_nothing_is_told_of(told: Told) -> None:
    await told.runs("quiet", share(1, 3000, cores=30))
    of = ("quiet", "main", GPU[1])
    assert await told.value("lamina_container_memory_limit_bytes", *of) == 3000 * MIB
    assert await told.value("lamina_container_cores_percent", *of) == 30
    assert await told.value("lamina_container_enforcer", *of, "facade") == 1
    assert await told.value("lamina_container_memory_refusals_total", *of) == 0
    assert await told.value("hami_vgpu_memory_limit_bytes", *of) == 3000 * MIB
    assert await told.value("hami_vgpu_memory_used_bytes", *of) == 0
    used = [v for (name, _), v in (await told.series(*of)).items() if name == "lamina_container_memory_used_bytes"]
    assert used == [0] * (len(layout.KINDS) + 1)


async def test_memory_and_time_are_told_as_the_container_has_them(told: Told) -> None:
    folder = await told.runs("busy", share(0, 3000))
    holds(folder / "usage", data=100 * MIB, context=300 * MIB, spilled=7 * MIB, refusals=2, busy_ns=1_500_000_000)
    of = ("busy", GPU[0])
    assert await told.value("lamina_container_memory_used_bytes", *of, "data") == 100 * MIB
    assert await told.value("lamina_container_memory_used_bytes", *of, "context") == 300 * MIB
    assert await told.value("lamina_container_memory_spilled_bytes", *of) == 7 * MIB
    assert await told.value("lamina_container_memory_refusals_total", *of) == 2
    assert await told.value("lamina_container_busy_seconds_total", *of) == 1.5
    assert await told.value("hami_vgpu_memory_used_bytes", *of) == 400 * MIB
    assert await told.value("hami_vgpu_memory_buffer_bytes", *of) == 100 * MIB


async def test_a_whole_gpu_is_its_containers_own(told: Told) -> None:
    await told.runs("alone", share(2, 32768, mode=Mode.WHOLE))
    told.nvml.read[GPU[2]] = GpuReading(used_bytes=500, free_bytes=1500, busy_percent=40)
    assert await told.value("lamina_container_memory_limit_bytes", "alone", GPU[2]) == 2000
    assert await told.value("lamina_container_utilization_percent", "alone", GPU[2]) == 40
    assert await told.value("hami_vgpu_memory_used_bytes", "alone", GPU[2]) == 500


async def test_a_mig_device_is_told_by_its_memory_and_place(told: Told) -> None:
    mig = structs.replace(FACTS[3], mig_capable=True, pci_device=0x20B010DE)
    told.node.nvml.present[3], told.node.cuttable = mig, {GPU[3]}
    await told.runs("cut", share(3, 3000, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=2)))
    [made] = told.node.nvml.instances[GPU[3]]
    told.nvml.read[made.uuid] = GpuReading(used_bytes=500, free_bytes=1500)
    told.offer.observed("515.86.01", tuple(map(GpuState, await told.node.nvml.gpus())))
    assert await told.value("lamina_container_memory_limit_bytes", "cut", made.uuid) == 2000
    assert await told.value("lamina_container_enforcer", "cut", made.uuid, "mig") == 1
    assert await told.value("hami_mig_device_info", "cut", GPU[3], made.uuid, "1g.5gb", str(made.id), "0") == 1
    assert await told.value("hami_vgpu_memory_used_bytes", "cut", GPU[3]) == 500
    names = {name for name, _ in await told.series("cut")}
    assert not names & {"lamina_container_busy_seconds_total", "hami_container_device_utilization_ratio"}


def plainly(told: Told, pod: str, *devices: str, container: str = "main", instances: tuple[Instance, ...] = ()) -> None:
    """Kubelet gave a container devices by count, and it was prepared."""
    (made,) = told.node.record.allocate([devices], "nvidia.com/gpu")
    gpus = () if instances else tuple(dict.fromkeys(device.partition("::")[0] for device in devices))
    bound = Bound(
        namespace="default", pod=pod, pod_uid=f"uid-of-{pod}", container=container, gpus=gpus, instances=instances
    )
    told.node.record.bind({made.name: bound})


def process(told: Told, pid: int, pod: str) -> GpuProcess:
    """One with 7 MiB, in the cgroup of a pod, as systemd writes it."""
    (told.proc / str(pid)).mkdir(parents=True)
    slices = f"kubepods.slice/kubepods-besteffort-pod{f'uid-of-{pod}'.replace('-', '_')}.slice"
    (told.proc / str(pid) / "cgroup").write_text(f"0::/{slices}/cri-containerd-4f3c.scope\n")
    return GpuProcess(pid, 7)


async def test_containers_that_share_by_time_have_the_memory_of_their_own_processes(told: Told) -> None:
    for pod in ("a", "b", "quiet"):
        plainly(told, pod, f"{GPU[0]}::{ord(pod[0])}")
    told.nvml.read[GPU[0]] = GpuReading(used_bytes=30 * MIB, free_bytes=70 * MIB, busy_percent=90)
    told.nvml.running[GPU[0]] = (process(told, 1, "a"), process(told, 2, "a"), process(told, 3, "b"))
    for pod, used in (("a", 14), ("b", 7), ("quiet", 0)):
        assert await told.value("hami_vgpu_memory_used_bytes", pod, GPU[0]) == used * MIB
        assert await told.value("lamina_container_memory_limit_bytes", pod, GPU[0]) == 100 * MIB
        assert await told.value("lamina_container_enforcer", pod, "none") == 1
        names = {name for name, _ in await told.series(pod)}
        assert "lamina_container_utilization_percent" not in names, "nobody knows whose time it was"
    told.nvml.running[GPU[0]] += (GpuProcess(99, 5),)
    for pod in ("a", "b", "quiet"):
        names = {name for name, _ in await told.series(pod)}
        assert "hami_vgpu_memory_used_bytes" not in names, "a process that nobody knows could be anybody's"
        assert "lamina_container_memory_limit_bytes" in names


async def test_of_two_containers_of_one_pod_on_a_gpu_nobody_knows_which_uses_it(told: Told) -> None:
    for container_name in ("one", "two"):
        plainly(told, "a", f"{GPU[0]}::{container_name}", container=container_name)
    plainly(told, "b", f"{GPU[0]}::3")
    told.nvml.running[GPU[0]] = (process(told, 1, "a"), process(told, 2, "b"))
    assert await told.value("hami_vgpu_memory_used_bytes", "b") == 7 * MIB
    assert "hami_vgpu_memory_used_bytes" not in {name for name, _ in await told.series("a")}


async def test_mig_devices_and_who_has_them_are_told(told: Told) -> None:
    free = nvml.MigInstance(2, "3g.20gb", 0, "MIG-free", 1)
    held = nvml.MigInstance(1, "3g.20gb", 4, "MIG-held")
    made = nvml.MigInstance(3, "1g.5gb", 0, "MIG-made")
    sick = structs.replace(FACTS[0], mig_enabled=True, instances=(held, free), pci_device=0x20F110DE)
    other = structs.replace(FACTS[1], mig_enabled=True, instances=(made,))
    told.offer.observed("1", (GpuState(sick, "XID 79"), GpuState(other)))
    told.nvml.read |= {
        "MIG-held": GpuReading(used_bytes=3 * MIB, free_bytes=5 * MIB),
        "MIG-made": GpuReading(used_bytes=2 * MIB, free_bytes=2 * MIB),
    }
    plainly(told, "p", "MIG-held")
    plainly(told, "q", "ticket-7", instances=(Instance(gpu=GPU[1], profile="1g.5gb", start=0),))
    assert await told.value("lamina_mig_memory_bytes", GPU[0], "MIG-held", "3g.20gb", "1") == 8 * MIB
    assert await told.value("lamina_mig_healthy", "MIG-free", "XID 79") == 0
    name = "hami_node_gpu_mig_instance_info"
    assert (name, frozenset({told.node.name, GPU[0], "0", "MIG-held", "3g.20gb", "1", "4"})) in (
        await told.series(GPU[0])
    )
    assert await told.value("hami_mig_device_info", "p", "MIG-held", GPU[0], "3g.20gb") == 1
    assert await told.value("hami_vgpu_memory_used_bytes", "p", GPU[0]) == 3 * MIB
    assert await told.value("lamina_container_memory_used_bytes", "p", "MIG-held", "data") == 3 * MIB
    assert await told.value("lamina_container_enforcer", "p", "mig") == 1
    assert await told.value("hami_mig_device_info", "q", "MIG-made", GPU[1]) == 1
    assert not any(labels >= {"p", "MIG-free"} for _, labels in await told.series())


async def test_cces_names(told: Told) -> None:
    await told.runs("cores", share(0, 3000, cores=30))
    await told.runs("memory", share(1, 2000))
    told.nvml.read[GPU[0]] = GpuReading(used_bytes=3 * MIB, free_bytes=9 * MIB, busy_percent=40, power_w=71.5)
    assert await told.value("xgpu_memory_total", "cores", GPU[0]) == 3000 * MIB
    assert await told.value("xgpu_core_percentage_total", "cores") == 30
    assert await told.value("gpu_pod_memory_used", "memory") == 0
    assert [await told.value("gpu_schedule_policy", each) for each in GPU[:3]] == [1, 0, 2]
    assert await told.value("cce_gpu_memory_utilization", GPU[0]) == 25
    assert await told.value("cce_gpu_power_usage", GPU[0]) == 71500
    told.offer.observed("1", tuple(GpuState(facts, "XID 79") for facts in FACTS))
    assert await told.value("xgpu_device_health", GPU[0]) == 1


async def test_gpus_are_told_under_each_name(told: Told) -> None:
    told.nvml.read[GPU[0]] = GpuReading(bus_id="00000000:3B:00.0", used_bytes=3 * MIB, free_bytes=5 * MIB, power_w=71.5)
    assert await told.value("DCGM_FI_DEV_FB_USED", GPU[0], "nvidia0", "00000000:3B:00.0", told.node.name) == 3
    assert await told.value("hami_host_gpu_memory_used_bytes", GPU[0], told.node.name) == 3 * MIB
    assert await told.value("lamina_gpu_memory_bytes", GPU[0]) == 32768 * MIB
    assert await told.value("DCGM_FI_DEV_POWER_USAGE", GPU[0]) == 71.5
    assert "DCGM_FI_DEV_GPU_TEMP" not in {name for name, _ in await told.series(GPU[0])}


async def test_a_daemon_of_mps_is_told_with_its_state(told: Told) -> None:
    told.offer.by_mps(
        {
            GPU[0]: MpsDaemon(gpu=GPU[0], state=MpsState.READY),
            GPU[1]: MpsDaemon(gpu=GPU[1], state=MpsState.WAITING, reason="process 7 is using the GPU"),
        }
    )
    assert await told.value("lamina_mps_ready", GPU[0], "ready") == 1
    assert await told.value("lamina_mps_ready", GPU[1], "waiting") == 0
    assert "lamina_mps_ready" not in {name for name, _ in await told.series(GPU[2])}


async def test_a_driver_that_is_silent_leaves_what_is_known(told: Told) -> None:
    told.nvml.broken = "NVML does not tell the GPUs: Driver Not Loaded"
    told.offer.observed("515.86.01", tuple(GpuState(facts, "the driver is gone") for facts in FACTS))
    assert await told.value("lamina_gpu_healthy", GPU[0], "the driver is gone") == 0
    assert not any(name == "lamina_gpu_utilization_percent" for name, _ in await told.series(GPU[0]))


async def test_only_the_names_that_are_wanted(tmp_path: Path) -> None:
    told = Told(tmp_path, named=())
    await told.runs("quiet", share(1, 3000))
    assert {name.partition("_")[0] for name, _ in await told.series()} == {"lamina"}


@pytest.mark.parametrize("damage", [b"", b"nonsense" * 100])
async def test_a_usage_file_that_the_tenant_spoiled_says_nothing(told: Told, damage: bytes) -> None:
    folder = await told.runs("spoiled", share(0, 3000))
    (folder / "usage").write_bytes(damage)
    assert await told.value("lamina_container_memory_limit_bytes", "spoiled") == 3000 * MIB
    assert await told.value("hami_vgpu_memory_used_bytes", "spoiled") == 0


async def test_a_container_that_is_gone_is_told_of_no_more(told: Told) -> None:
    await told.runs("short", share(0, 3000))
    assert await told.series("short")
    told.node.record.drop([allocation.name for allocation in told.node.record.allocations])
    assert not await told.series("short")


def test_gpu_time_is_averaged_over_a_second_at_least() -> None:
    rates, one = Rates(), ("uid/main", GPU[0])
    assert rates.percent(one, 10.0, now=100.0) == 0
    assert rates.percent(one, 10.4, now=100.5) == 0
    assert rates.percent(one, 11.0, now=102.0) == 50
    assert rates.percent(one, 11.5, now=102.5) == 60  # of 2.5 s, since the newest look is too near
    assert rates.percent(one, 11.0, now=104.0) == 0
    rates.keep(set())
    assert rates.percent(one, 99.0, now=105.0) == 0


@contextlib.asynccontextmanager
async def served(told: Told, file: Path) -> AsyncIterator[str]:
    task = asyncio.create_task(serving(told.page, Address("127.0.0.1", 0), told.node.files, file))
    deadline = asyncio.get_running_loop().time() + 60
    while not file.exists():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)
    yield file.read_text().strip()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_the_page_is_where_its_file_says(told: Told, tmp_path: Path) -> None:
    async with served(told, tmp_path / "metrics.url") as url:
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read())
    assert b"lamina_gpu_healthy" in page


def holds(path: Path, *, spilled: int, refusals: int, busy_ns: int, **kinds: int) -> None:
    """Write one process with these bytes by kind into a usage file for one GPU."""
    data = bytearray(path.read_bytes().ljust(layout.usage_bytes(1), b"\0"))
    head = layout.Usage.from_buffer(data)
    head.slots_used = 1
    head.devices[0].refusals = refusals
    head.devices[0].compute.busy_ns = busy_ns
    offset = len(bytes(head))
    slot = layout.Slot.from_buffer(data, offset)
    slot.owner, slot.generation = 42, 1
    line = layout.SlotDevice.from_buffer(data, offset + len(bytes(slot)))
    line.spilled = spilled
    for number, kind in enumerate(layout.KINDS):
        line.bytes[number] = kinds.get(kind, 0)
    del head, slot, line
    path.write_bytes(bytes(data))
