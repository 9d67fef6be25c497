"""A node that shares its GPUs by MPS, with every door faked but the disk, for the tests of its daemons."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from lamina.agent.inventory.native_devices import NativeKind
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.inventory.usage import devices_in_use
from lamina.agent.mps.daemons import DaemonSupervisor, SharedGpus
from lamina.agent.mps.lifecycle import DaemonJournal, DaemonLifecycle
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Bound
from lamina.agent.state.record import Record
from lamina.configuration import DEFAULT
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.mps import MpsDaemon
from lamina.core.sharing import GPU, Replicated, Strategy
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.mps import FakeMps
from lamina.ports.nvml import GpuFacts
from lamina.ports.nvml.fake import FakeNvml, fake_gpus
from tests.agent.node import fake_context
from tests.worlds.deaths import Died, Life, MortalPort

FACTS = fake_gpus(2, name="A100-PCIE-40GB", memory_mib=40960)
FIRST, SECOND = (facts.uuid for facts in FACTS)


class MpsNode:
    """`start` starts an agent's part again over what is on the disk and in the fakes, as after a crash."""

    def __init__(self, root: Path, facts: Iterable[GpuFacts] = FACTS) -> None:
        self.root = root
        self.facts = list(facts)
        self.mps, self.nvml, self.files, self.clock = FakeMps(), FakeNvml(self.facts), Files(), FakeClock()
        self.healthy = True
        self.events: list[MpsDaemon] = []

    def start(self, replicas: int = 10, *, selected: bool = True, root: str = "mps", life: Life | None = None) -> None:
        """`replicas` of each GPU by MPS; 0 is a node that grants shares."""
        life = life or Life()
        mps, nvml, files = (MortalPort(port, life) for port in (self.mps, self.nvml, self.files))
        self.record = Record(self.root / "record.json", files)
        offered = Replicated(name=GPU, offered=GPU, replicas=replicas)
        mode = Mode.MPS if replicas else Mode.WHOLE
        self.kind = NativeKind(offered, Strategy.MPS)
        self.offer = NodeOfferStore(
            OfferState(
                node="node-1",
                settings=DEFAULT.for_node("node-1"),
                native_kinds=(self.kind,) if replicas else (),
                mode=mode,
                selected=selected,
            ),
            lambda: devices_in_use(self.record.allocations, mode),
        )
        kept = DaemonJournal(self.root / "mps.json", files)
        self.daemons = DaemonSupervisor(
            fake_context(self.root, nvml=nvml, record=self.record, clock=self.clock),
            self.offer,
            SharedGpus(replicas, self.root / root),
            lifecycle=DaemonLifecycle(mps, nvml, kept, files, self.clock),
            report=self._reported,
        )
        self.observe()

    def observe(self) -> None:
        reason = "" if self.healthy else "the driver reported XID 79"
        self.offer.update(driver="515.86.01", observed=tuple(ObservedGpu(facts, reason) for facts in self.facts))

    async def reconcile(self, times: int = 1) -> None:
        for _ in range(times):
            await self.daemons.reconcile()

    def hold(self, pod: str, gpu: str = FIRST, mode: Mode = Mode.MPS) -> str:
        """A container of the pod has a replica, or a share, of the GPU; the name it was given."""
        (given,) = self.record.allocate([[f"{gpu}::0" if mode is Mode.MPS else f"ticket-{pod}"]], GPU)
        grant = ContainerGrant(name="main", shares=(Share(gpu=gpu, memory_mib=100, mode=mode),))
        bound = Bound(namespace="default", pod=pod, pod_uid="u", container="main", grant=grant)
        self.record.bind({given.name: bound})
        self.observe()
        return given.name

    def state(self, gpu: str = FIRST) -> tuple[str, str]:
        found = self.offer.daemon(gpu)
        return (found.state.value, found.reason) if found else ("none", "")

    def healthy_devices(self) -> list[str]:
        """The GPU of each device that kubelet may hand out, each GPU once."""
        offered = (device for device in self.offer.native[self.kind].value if device.healthy)
        return sorted({device.id.partition("::")[0] for device in offered if "::" in device.id})

    def traces(self) -> tuple[object, ...]:
        """All that MPS leaves on the node."""
        folders = [path.name for path in self.root.glob("*mps*/*")]
        return (sorted(self.mps.daemons), sorted(self.nvml.exclusive), folders, (self.root / "mps.json").read_bytes())

    async def _reported(self, daemon: MpsDaemon) -> None:
        self.events.append(daemon)


async def died(node: MpsNode, moment: int, replicas: int) -> bool:
    """Whether an agent that starts now and has two looks dies at this moment, counted from 0."""
    try:
        node.start(replicas, life=Life(moment))
        await node.reconcile(2)
    except Died:
        return True
    return False


def older(facts: GpuFacts) -> GpuFacts:
    """The same as a GPU of Pascal."""
    return structs.replace(facts, compute=(6, 0))
