"""A node that shares its GPUs by MPS, with every door faked but the disk, for the tests of its daemons."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from lamina.agent.inventory.native_devices import NativeKind
from lamina.agent.mps.daemons import SharedGpus
from lamina.agent.state.holdings import Bound
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.mps import MpsDaemon
from lamina.core.sharing import GPU, Replicated, Strategy
from lamina.ports.kube import EVENTS
from lamina.ports.nvml import GpuFacts
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.node import Node
from tests.worlds.deaths import Died, Life

FACTS = fake_gpus(2, name="A100-PCIE-40GB", memory_mib=40960)
FIRST, SECOND = (facts.uuid for facts in FACTS)


class MpsNode(Node):
    """`start` starts an agent's part again over what is on the disk and in the fakes, as after a crash."""

    def __init__(self, root: Path, facts: Sequence[GpuFacts] = FACTS) -> None:
        self.healthy = True
        self.events: list[MpsDaemon] = []
        super().__init__(root, facts=facts)

    def start(self, replicas: int = 10, *, selected: bool = True, root: str = "mps", life: Life | None = None) -> None:
        """`replicas` of each GPU by MPS; 0 is a node that grants shares."""
        super().start(life)
        self.kind = NativeKind(Replicated(name=GPU, offered=GPU, replicas=replicas), Strategy.MPS)
        self.offer_gpus(
            SharedGpus(replicas, self.root / root),
            self._reported,
            native_kinds=(self.kind,) if replicas else (),
            mode=Mode.MPS if replicas else Mode.WHOLE,
            selected=selected,
        )
        self.observe()

    def observe(self) -> None:
        reason = "" if self.healthy else "the driver reported XID 79"
        self.offer.update(
            driver="515.86.01", observed=tuple(each._replace(reason=reason) for each in self.gpus.values())
        )

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

    async def pod_events(self) -> list[tuple[str, str, int]]:
        """The pod, reason and number of each event about a pod."""
        events = (await self.kube.list(EVENTS)).items
        about = [(each["involvedObject"], each["reason"], each["count"]) for each in events]
        return [(involved["name"], reason, count) for involved, reason, count in about if involved["kind"] == "Pod"]

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
