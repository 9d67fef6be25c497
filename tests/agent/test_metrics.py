"""What the agent tells Prometheus, against what was granted, held and measured."""

import asyncio
import contextlib
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from lamina import __version__
from lamina.agent.containers.paths import write_limits
from lamina.agent.inventory.monitor import CheckedNvml, GpuMonitor
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.metrics import collection
from lamina.agent.metrics.collection import UsageRates
from lamina.agent.metrics.server import MetricsPage, MetricsServer
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Bound, Instance
from lamina.configuration import DEFAULT, Config, load
from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.quantities import MIB
from lamina.enforcement import layout
from lamina.ports import nvml
from lamina.ports.caller_reviews import CallerReviews, CallerVerdict
from lamina.ports.clock import FakeClock
from lamina.ports.host import FakeHost
from lamina.ports.listener import Address
from lamina.ports.nvml import GpuProcess, GpuReading
from lamina.ports.nvml.fake import FakeNvml
from tests.agent.node import FACTS, GPU, Node, container, node_offer, share
from tests.waiting import canceled, until
from tests.worlds.planted import raising

Series = dict[tuple[str, frozenset[str]], float]


class Reported:
    """A node, its NVML, and the page that tells of both."""

    def __init__(self, root: Path, config: Config = DEFAULT) -> None:
        self.node = Node(root)
        self.node.preparer = self.node.ticket_preparer(write_limits)
        self.nvml = FakeNvml(FACTS)
        self.host = FakeHost()
        self.offer = node_offer(ticket_kinds=ticket_kinds(DEFAULT))
        self.offer.update(driver="515.86.01", observed=tuple(ObservedGpu(facts) for facts in FACTS))
        self.context = replace(self.node.context, nvml=self.nvml, config=config)
        self.page = MetricsPage(self.context, self.offer, self.host)

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
def reported(tmp_path: Path) -> Reported:
    return Reported(tmp_path)


async def test_an_idle_container_has_samples(reported: Reported) -> None:
    await reported.runs("quiet", share(1, 3000, cores=30))
    of = ("quiet", "main", GPU[1])
    assert await reported.value("lamina_container_memory_limit_bytes", *of) == 3000 * MIB
    assert await reported.value("lamina_container_cores_percent", *of) == 30
    assert await reported.value("lamina_container_enforcer", *of, "facade") == 1
    assert await reported.value("lamina_container_memory_refusals_total", *of) == 0
    assert await reported.value("hami_vgpu_memory_limit_bytes", *of) == 3000 * MIB
    assert await reported.value("hami_vgpu_memory_used_bytes", *of) == 0
    used = [v for (name, _), v in (await reported.series(*of)).items() if name == "lamina_container_memory_used_bytes"]
    assert used == [0] * (len(layout.KINDS) + 1)


async def test_the_launch_window_of_a_container(reported: Reported) -> None:
    folder = await reported.runs("busy", share(1, 3000, cores=30))
    series = "lamina_container_launch_window_seconds"
    assert await reported.value(series, "busy", GPU[1]) == 0
    decides(folder / "arbiter", 0, 5000 | 20000 << 32)
    assert await reported.value(series, "busy", GPU[1]) == 0.015


async def test_what_a_launch_takes_is_known_once_it_was_measured(reported: Reported) -> None:
    folder = await reported.runs("busy", share(1, 3000, cores=30))
    holds(folder / "usage", spilled=0, refusals=0, busy_ns=0)
    named = "lamina_container_launch_seconds"
    assert named not in {name for name, _ in await reported.series("busy", GPU[1])}
    holds(folder / "usage", spilled=0, refusals=0, busy_ns=0, launch_ns=2_500_000)
    assert await reported.value(named, "busy", GPU[1]) == 0.0025


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:100])])
async def test_a_container_without_a_whole_arbiter_file_has_no_windows(
    reported: Reported, damage: Callable[[Path], object]
) -> None:
    folder = await reported.runs("old", share(0, 3000, cores=30))
    damage(folder / "arbiter")
    assert await reported.value("lamina_container_launch_window_seconds", "old", GPU[0]) == 0


def decides(path: Path, device: int, window: int) -> None:
    """The agent has given the container this window on its GPU of this number."""
    arbiter = layout.ArbiterFile.from_buffer_copy(path.read_bytes())
    arbiter.lendings[device].window = window
    path.chmod(0o644)
    path.write_bytes(bytes(arbiter))


async def test_memory_and_time_are_those_of_the_container(reported: Reported) -> None:
    folder = await reported.runs("busy", share(0, 3000, cores=30, policy=ComputePolicy.CAP))
    holds(folder / "usage", data=100 * MIB, context=300 * MIB, spilled=7 * MIB, refusals=2, busy_ns=1_500_000_000)
    of = ("busy", GPU[0])
    assert await reported.value("lamina_container_memory_used_bytes", *of, "data") == 100 * MIB
    assert await reported.value("lamina_container_memory_used_bytes", *of, "context") == 300 * MIB
    assert await reported.value("lamina_container_memory_spilled_bytes", *of) == 7 * MIB
    assert await reported.value("lamina_container_memory_refusals_total", *of) == 2
    assert await reported.value("lamina_container_busy_seconds_total", *of) == 1.5
    assert await reported.value("hami_vgpu_memory_used_bytes", *of) == 400 * MIB
    assert await reported.value("hami_vgpu_memory_buffer_bytes", *of) == 100 * MIB


async def test_the_time_of_a_container_without_a_share_of_it_is_unknown(reported: Reported) -> None:
    """It is measured only while a neighbor needs it."""
    holds(await reported.runs("free", share(0, 3000)) / "usage", spilled=0, refusals=0, busy_ns=1_500_000_000)
    names = {name for name, _ in await reported.series("free", GPU[0])}
    assert "lamina_container_memory_used_bytes" in names
    assert not names & {"lamina_container_busy_seconds_total", "lamina_container_utilization_percent"}


async def test_a_whole_gpu_is_its_containers_own(reported: Reported) -> None:
    await reported.runs("alone", share(2, 32768, mode=Mode.WHOLE))
    reported.nvml.read[GPU[2]] = GpuReading(used_bytes=500, free_bytes=1500, busy_percent=40)
    assert await reported.value("lamina_container_memory_limit_bytes", "alone", GPU[2]) == 2000
    assert await reported.value("lamina_container_utilization_percent", "alone", GPU[2]) == 40
    assert await reported.value("hami_vgpu_memory_used_bytes", "alone", GPU[2]) == 500
    peaks = [name for name, _ in await reported.series("alone", GPU[2]) if name == "lamina_container_memory_peak_bytes"]
    assert not peaks, "nothing records it"


async def test_a_mig_device_has_its_memory_and_place(reported: Reported) -> None:
    mig = structs.replace(FACTS[3], mig_capable=True, pci_device=0x20B010DE)
    reported.node.nvml.present[3], reported.node.partitionable = mig, {GPU[3]}
    await reported.runs("cut", share(3, 3000, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=2)))
    [made] = reported.node.nvml.instances[GPU[3]]
    reported.nvml.read[made.uuid] = GpuReading(used_bytes=500, free_bytes=1500)
    reported.offer.update(driver="515.86.01", observed=tuple(map(ObservedGpu, await reported.node.nvml.gpus())))
    assert await reported.value("lamina_container_memory_limit_bytes", "cut", made.uuid) == 2000
    assert await reported.value("lamina_container_enforcer", "cut", made.uuid, "mig") == 1
    assert await reported.value("hami_mig_device_info", "cut", GPU[3], made.uuid, "1g.5gb", str(made.id), "0") == 1
    assert await reported.value("hami_vgpu_memory_used_bytes", "cut", GPU[3]) == 500
    names = {name for name, _ in await reported.series("cut")}
    assert not names & {"lamina_container_busy_seconds_total", "hami_container_device_utilization_ratio"}


def plainly(
    reported: Reported, pod: str, *devices: str, container: str = "main", instances: tuple[Instance, ...] = ()
) -> None:
    """Kubelet gave a container devices by count, and it was prepared."""
    (made,) = reported.node.record.allocate([devices], "nvidia.com/gpu")
    units = dict.fromkeys(device.partition("::")[0] for device in devices)
    shares = tuple(Share(gpu=unit, memory_mib=100, mode=Mode.TIMESLICE) for unit in units)
    parts = tuple(
        Share(gpu=each.gpu, memory_mib=100, mode=Mode.MIG, mig=MigInstance(profile=each.profile, start=each.start))
        for each in instances
    )
    grant = ContainerGrant(name=container, shares=parts or shares)
    bound = Bound(namespace="default", pod=pod, pod_uid=f"uid-of-{pod}", container=container, grant=grant)
    reported.node.record.bind({made.name: bound})


def process(reported: Reported, pid: int, pod: str) -> GpuProcess:
    """One with 7 MiB, in the cgroup of a pod, as systemd writes it."""
    slices = f"kubepods.slice/kubepods-besteffort-pod{f'uid-of-{pod}'.replace('-', '_')}.slice"
    reported.host.cgroups[pid] = f"0::/{slices}/cri-containerd-4f3c.scope\n"
    return GpuProcess(pid, 7 * MIB)


async def test_containers_that_share_by_time_have_the_memory_of_their_own_processes(reported: Reported) -> None:
    for pod in ("a", "b", "quiet"):
        plainly(reported, pod, f"{GPU[0]}::{ord(pod[0])}")
    reported.nvml.read[GPU[0]] = GpuReading(used_bytes=30 * MIB, free_bytes=70 * MIB, busy_percent=90)
    reported.nvml.running[GPU[0]] = (process(reported, 1, "a"), process(reported, 2, "a"), process(reported, 3, "b"))
    for pod, used in (("a", 14), ("b", 7), ("quiet", 0)):
        assert await reported.value("hami_vgpu_memory_used_bytes", pod, GPU[0]) == used * MIB
        assert await reported.value("lamina_container_memory_limit_bytes", pod, GPU[0]) == 100 * MIB
        assert await reported.value("lamina_container_enforcer", pod, "none") == 1
        names = {name for name, _ in await reported.series(pod)}
        assert "lamina_container_utilization_percent" not in names, "no one knows whose time it was"
    reported.nvml.running[GPU[0]] += (GpuProcess(99, 5),)
    for pod in ("a", "b", "quiet"):
        names = {name for name, _ in await reported.series(pod)}
        assert "hami_vgpu_memory_used_bytes" not in names, "a process that no one knows could be anybody's"
        assert "lamina_container_memory_limit_bytes" in names


async def test_clients_of_mps_have_its_limits_and_its_server_is_not_one_of_them(reported: Reported) -> None:
    plainly(reported, "a", f"{GPU[0]}::1")
    daemon = MpsDaemon(gpu=GPU[0], state=MpsState.READY, memory_mib=3000, threads_percent=10)
    reported.offer.update(daemons={GPU[0]: daemon})
    reported.nvml.read[GPU[0]] = GpuReading(used_bytes=30 * MIB, free_bytes=70 * MIB, busy_percent=90)
    reported.nvml.running[GPU[0]] = (process(reported, 1, "a"), GpuProcess(50, 30 * MIB))
    assert "lamina_container_memory_used_bytes" not in {name for name, _ in await reported.series("a")}
    reported.host.names[50] = "nvidia-cuda-mps"
    assert await reported.value("lamina_container_memory_used_bytes", "a", GPU[0], "data") == 7 * MIB
    assert await reported.value("lamina_container_memory_limit_bytes", "a", GPU[0]) == 3000 * MIB
    assert await reported.value("lamina_container_cores_percent", "a", GPU[0]) == 10
    assert await reported.value("lamina_container_enforcer", "a", "mps") == 1
    reported.host.names[1] = "nvidia-cuda-mps"
    used = await reported.value("lamina_container_memory_used_bytes", "a", GPU[0], "data")
    assert used == 7 * MIB, "a pod's process counts under any name"
    reported.offer.update(daemons={GPU[0]: structs.replace(daemon, state=MpsState.FAILED)})
    assert await reported.value("lamina_container_enforcer", "a", "none") == 1


async def test_two_containers_of_one_pod_on_a_gpu_cannot_be_told_apart(reported: Reported) -> None:
    for container_name in ("one", "two"):
        plainly(reported, "a", f"{GPU[0]}::{container_name}", container=container_name)
    plainly(reported, "b", f"{GPU[0]}::3")
    reported.nvml.running[GPU[0]] = (process(reported, 1, "a"), process(reported, 2, "b"))
    assert await reported.value("hami_vgpu_memory_used_bytes", "b") == 7 * MIB
    assert "hami_vgpu_memory_used_bytes" not in {name for name, _ in await reported.series("a")}


async def test_mig_devices_are_reported_with_their_containers(reported: Reported) -> None:
    free = nvml.MigInstanceFacts(2, "3g.20gb", 0, "MIG-free", 1)
    held = nvml.MigInstanceFacts(1, "3g.20gb", 4, "MIG-held")
    made = nvml.MigInstanceFacts(3, "1g.5gb", 0, "MIG-made")
    sick = structs.replace(FACTS[0], mig_enabled=True, instances=(held, free), pci_device=0x20F110DE)
    other = structs.replace(FACTS[1], mig_enabled=True, instances=(made,))
    reported.offer.update(driver="1", observed=(ObservedGpu(sick, "XID 79"), ObservedGpu(other)))
    reported.nvml.read |= {
        "MIG-held": GpuReading(used_bytes=3 * MIB, free_bytes=5 * MIB),
        "MIG-made": GpuReading(used_bytes=2 * MIB, free_bytes=2 * MIB),
    }
    plainly(reported, "p", "MIG-held")
    plainly(reported, "q", "ticket-7", instances=(Instance(gpu=GPU[1], profile="1g.5gb", start=0),))
    assert await reported.value("lamina_mig_memory_bytes", GPU[0], "MIG-held", "3g.20gb", "1") == 8 * MIB
    assert await reported.value("lamina_mig_healthy", "MIG-free", "XID 79") == 0
    name = "hami_node_gpu_mig_instance_info"
    assert (name, frozenset({reported.node.name, GPU[0], "0", "MIG-held", "3g.20gb", "1", "4"})) in (
        await reported.series(GPU[0])
    )
    assert await reported.value("hami_mig_device_info", "p", "MIG-held", GPU[0], "3g.20gb") == 1
    assert await reported.value("hami_vgpu_memory_used_bytes", "p", GPU[0]) == 3 * MIB
    assert await reported.value("lamina_container_memory_used_bytes", "p", "MIG-held", "data") == 3 * MIB
    assert await reported.value("lamina_container_enforcer", "p", "mig") == 1
    assert await reported.value("hami_mig_device_info", "q", "MIG-made", GPU[1]) == 1
    assert not any(labels >= {"p", "MIG-free"} for _, labels in await reported.series())


async def test_cces_names(reported: Reported) -> None:
    await reported.runs("cores", share(0, 3000, cores=30))
    await reported.runs("memory", share(1, 2000))
    reported.nvml.read[GPU[0]] = GpuReading(used_bytes=3 * MIB, free_bytes=9 * MIB, busy_percent=40, power_w=71.5)
    assert await reported.value("xgpu_memory_total", "cores", GPU[0]) == 3000 * MIB
    assert await reported.value("xgpu_core_percentage_total", "cores") == 30
    assert await reported.value("gpu_pod_memory_used", "memory") == 0
    assert [await reported.value("gpu_schedule_policy", each) for each in GPU[:3]] == [1, 0, 2]
    assert await reported.value("cce_gpu_memory_utilization", GPU[0]) == 25
    assert await reported.value("cce_gpu_power_usage", GPU[0]) == 71500
    reported.offer.update(driver="1", observed=tuple(ObservedGpu(facts, "XID 79") for facts in FACTS))
    assert await reported.value("xgpu_device_health", GPU[0]) == 1


async def test_gpus_are_reported_under_each_name(reported: Reported) -> None:
    reported.nvml.read[GPU[0]] = GpuReading(
        bus_id="00000000:3B:00.0", used_bytes=3 * MIB, free_bytes=5 * MIB, power_w=71.5
    )
    assert await reported.value("DCGM_FI_DEV_FB_USED", GPU[0], "nvidia0", "00000000:3B:00.0", reported.node.name) == 3
    assert await reported.value("hami_host_gpu_memory_used_bytes", GPU[0], reported.node.name) == 3 * MIB
    assert await reported.value("lamina_gpu_memory_bytes", GPU[0]) == 32768 * MIB
    assert await reported.value("DCGM_FI_DEV_POWER_USAGE", GPU[0]) == 71.5
    assert "DCGM_FI_DEV_GPU_TEMP" not in {name for name, _ in await reported.series(GPU[0])}


async def test_names_of_opentelemetry_are_served_where_they_are_chosen(tmp_path: Path) -> None:
    chosen = load("compatibility: {metrics: [opentelemetry]}\napiVersion: lamina.dev/v1alpha1\nkind: Configuration", "")
    reported = Reported(tmp_path, chosen)
    reported.nvml.read[GPU[0]] = GpuReading(used_bytes=3 * MIB, free_bytes=5 * MIB, busy_percent=40, power_w=71.5)
    of = (GPU[0], "gpu", "NVIDIA", "515.86.01", reported.node.name)
    assert await reported.value("hw_gpu_memory_limit_bytes", *of) == 32768 * MIB
    assert await reported.value("hw_gpu_memory_usage_bytes", *of) == 3 * MIB
    assert await reported.value("hw_gpu_memory_utilization_ratio", *of) == 3 / 8
    assert await reported.value("hw_gpu_utilization_ratio", *of) == 0.4
    assert await reported.value("hw_power_watts", *of) == 71.5
    names = {name for name, _ in await reported.series(GPU[0])}
    assert "hw_temperature_celsius" not in names, "the driver does not say it"
    assert "DCGM_FI_DEV_FB_USED" not in names


async def test_an_mps_daemon_is_reported_with_its_state(reported: Reported) -> None:
    reported.offer.update(
        daemons={
            GPU[0]: MpsDaemon(gpu=GPU[0], state=MpsState.READY),
            GPU[1]: MpsDaemon(gpu=GPU[1], state=MpsState.WAITING, reason="process 7 is using the GPU"),
        }
    )
    assert await reported.value("lamina_mps_ready", GPU[0], "ready") == 1
    assert await reported.value("lamina_mps_ready", GPU[1], "waiting") == 0
    assert "lamina_mps_ready" not in {name for name, _ in await reported.series(GPU[2])}


async def test_the_version_is_served(reported: Reported) -> None:
    assert await reported.value("lamina_build_info", __version__) == 1


async def test_the_time_of_the_last_look_at_the_gpus(reported: Reported) -> None:
    name = "lamina_gpus_read_timestamp_seconds"
    assert name not in {each for each, _ in await reported.series()}
    clock, read = FakeClock(), CheckedNvml(reported.nvml, reported.offer.state.settings, reported.context.aside)

    async def report(uuid: str, reason: str) -> None:
        pass

    monitor = GpuMonitor(read, reported.offer, clock, poll_s=5, rules=DEFAULT.health, before=None, report=report)
    await monitor.reconcile()
    assert await reported.value(name, reported.node.name) == clock.wall()
    reported.nvml.broken = "NVML does not answer"
    await clock.advance(5)
    await monitor.reconcile()
    assert await reported.value(name, reported.node.name) == clock.wall(), "a failure is an answer"


async def test_a_driver_that_is_silent_leaves_what_is_known(reported: Reported) -> None:
    reported.nvml.broken = "NVML does not tell the GPUs: Driver Not Loaded"
    reported.offer.update(
        driver="515.86.01", observed=tuple(ObservedGpu(facts, "the driver is gone") for facts in FACTS)
    )
    assert await reported.value("lamina_gpu_healthy", GPU[0], "the driver is gone") == 0
    assert not any(name == "lamina_gpu_utilization_percent" for name, _ in await reported.series(GPU[0]))


async def test_only_the_names_that_are_wanted(tmp_path: Path) -> None:
    reported = Reported(tmp_path, load("compatibility: {metrics: []}", "test"))
    await reported.runs("quiet", share(1, 3000))
    assert {name.partition("_")[0] for name, _ in await reported.series()} == {"lamina"}


@pytest.mark.parametrize("damage", [b"", b"nonsense" * 100])
async def test_a_usage_file_that_the_tenant_spoiled_says_nothing(reported: Reported, damage: bytes) -> None:
    folder = await reported.runs("spoiled", share(0, 3000))
    (folder / "usage").write_bytes(damage)
    assert await reported.value("lamina_container_memory_limit_bytes", "spoiled") == 3000 * MIB
    of_pod = {name for name, _ in await reported.series("spoiled", GPU[0])}
    assert not of_pod & {"hami_vgpu_memory_used_bytes", "lamina_container_busy_seconds_total"}, "a gap, and no zero"


async def test_a_container_that_has_ended_has_no_samples(reported: Reported) -> None:
    await reported.runs("short", share(0, 3000))
    assert await reported.series("short")
    reported.node.record.drop([allocation.name for allocation in reported.node.record.allocations])
    assert not await reported.series("short")


def test_gpu_time_is_averaged_over_a_second_at_least() -> None:
    rates, one = UsageRates(), ("uid/main", GPU[0])
    assert rates.percent(one, 10.0, now=100.0) == 0
    assert rates.percent(one, 10.4, now=100.5) == 0
    assert rates.percent(one, 11.0, now=102.0) == 50
    assert rates.percent(one, 11.5, now=102.5) == 60  # of 2.5 s, since the newest look is too near
    assert rates.percent(one, 11.0, now=104.0) == 0
    rates.keep(set())
    assert rates.percent(one, 99.0, now=105.0) == 0


@contextlib.asynccontextmanager
async def served(reported: Reported) -> AsyncIterator[str]:
    file = reported.context.settings.metrics_address
    task = asyncio.create_task(MetricsServer(reported.page, Address("127.0.0.1", 0), reported.context).run())
    await until(file.exists, task=task)
    yield file.read_text().strip()
    await canceled(task)


async def test_the_page_is_where_its_file_says(reported: Reported) -> None:
    async with served(reported) as url:
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read())
    assert b"lamina_gpu_healthy" in page


async def test_a_protected_page_is_for_callers_that_are_allowed(
    reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def verdict(_: CallerReviews, authorization: str, address: str) -> CallerVerdict:
        return CallerVerdict(200) if authorization == "Bearer prometheus" else CallerVerdict(403, "not allowed")

    monkeypatch.setattr(CallerReviews, "verdict", verdict)
    settings = replace(reported.context.settings, protect_metrics=True)
    reported.context = replace(reported.context, settings=settings)
    async with served(reported) as url, aiohttp.ClientSession() as session:
        assert url.startswith("https://")
        for token, status in (("prometheus", 200), ("tenant", 403)):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(url, headers=headers, ssl=False) as response:
                assert (response.status, b"lamina_gpu_healthy" in await response.read()) == (status, status == 200)
        async with session.get(url.replace("/metrics", "/healthz"), ssl=False) as response:
            assert response.status == 200


def holds(path: Path, *, spilled: int, refusals: int, busy_ns: int, launch_ns: int = 0, **kinds: int) -> None:
    """Write one process with these bytes by kind into a usage file for one GPU."""
    data = bytearray(path.read_bytes().ljust(layout.usage_bytes(1), b"\0"))
    head = layout.UsageFile.from_buffer(data)
    head.slots_used = 1
    head.devices[0].refusals = refusals
    head.devices[0].compute.busy_ns = busy_ns
    head.devices[0].compute.launch_ns = launch_ns
    offset = len(bytes(head))
    slot = layout.Slot.from_buffer(data, offset)
    slot.owner, slot.generation = 42, 1
    line = layout.SlotDevice.from_buffer(data, offset + len(bytes(slot)))
    line.spilled = spilled
    for number, kind in enumerate(layout.KINDS):
        line.bytes[number] = kinds.get(kind, 0)
    del head, slot, line
    path.write_bytes(bytes(data))


async def test_objects_that_were_set_aside_are_counted_by_kind(reported: Reported) -> None:
    reported.context.aside.add("Node", "node-1", ValueError("nonsense"))
    assert await reported.value("lamina_objects_set_aside_total", "Node") == 1


async def test_a_container_that_fails_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Reported(tmp_path)
    node = reported.node
    for name, ticket in (("bad", "ticket-0"), ("good", "ticket-1")):
        await node.pod(name, container("main", share(0, 1000)))
        await node.admit(name, {"main": [ticket]})
        await node.preparer.prepare([ticket])
    original = collection._shares_of
    monkeypatch.setattr(collection, "_shares_of", raising(lambda bound, *_: bound.pod == "bad", original))
    assert not await reported.series("bad")
    assert await reported.series("good")
    assert node.context.aside.counts == {"metrics of a container": 1}
