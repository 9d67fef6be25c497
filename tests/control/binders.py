"""A binder over an API server in memory, with a clock to be set."""

from dataclasses import dataclass

from lamina.control.background import Background
from lamina.control.binding import BindArgs, Binder
from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions
from lamina.control.pod_locks import PodLocks
from lamina.control.quotas import Quotas
from lamina.control.turns import Turns
from lamina.control.watching import Watching
from lamina.dialects.config import Config
from lamina.model.gpus import Gpu
from lamina.model.ledger import NOTHING
from lamina.ports.kube import GRANTS, PODS, Kube, Object
from lamina.ports.kube.fake import FakeKube
from tests.control.cluster import admitted_pod, inventory


@dataclass
class Clock:
    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


class Bench:
    """Everything that a bind touches, without HTTP."""

    def __init__(
        self, kube: Kube | None = None, *, config: Config | None = None, clock: Clock | None = None, name: str = "me"
    ) -> None:
        self.kube = kube or FakeKube()
        self.clock = clock or Clock()
        self.leads = True
        self.configuration = Configuration(config or Config(), "")
        self.capacity, self.quotas = Capacity(self.configuration), Quotas()
        self.ledger, self.locks, self.background = self.capacity.ledger, PodLocks(), Background()
        self.decisions = Decisions(self.capacity, self.quotas, self.configuration)
        self.watching = Watching(self.kube, self.capacity, self.quotas, self.configuration, now=self.clock)
        self.binder = Binder(
            self.kube,
            self.ledger,
            self.decisions,
            self.configuration,
            now=self.clock,
            wall=lambda: 1_700_000_000.9,
            background=self.background,
            locks=self.locks,
            turns=Turns(self.kube, name, catch_up=self.watching.catch_up, wall=lambda: 0.0),
            leading=lambda: self.leads,
        )

    def offer(self, node: str = "node-0", *given: Gpu) -> None:
        self.ledger.inventory_seen(inventory(node, *given))

    async def pod(self, name: str = "pod", **limits: object) -> Object:
        return await self.kube.create(PODS, admitted_pod(name, **limits))

    async def bind(self, pod: Object, node: str = "node-0") -> str:
        error = await self.binder.bind(self.args(pod, node))
        await self.background.drain()
        return error

    def args(self, pod: Object, node: str) -> BindArgs:
        meta = pod["metadata"]
        return BindArgs(podName=meta["name"], podNamespace=meta["namespace"], podUID=meta["uid"], node=node)

    async def grants(self) -> list[Object]:
        return (await self.kube.list(GRANTS)).items

    async def node_of(self, pod: Object) -> str:
        found = await self.kube.get(PODS, pod["metadata"]["name"], namespace="default")
        return str(found["spec"].get("nodeName", ""))

    def memory(self, node: str = "node-0", gpu: str = "GPU-0") -> int:
        return self.ledger.taken(node).get(gpu, NOTHING).memory_mib
