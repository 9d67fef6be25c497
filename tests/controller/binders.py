"""A binder over an API server in memory, with a clock to be set."""

from typing import Any

from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT, Config
from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.binder import Binder
from lamina.controller.binding.placement_lease import PlacementLease
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.context import Context
from lamina.controller.gangs.coordinator import GangCoordinator, plan_basis
from lamina.controller.observation.watches import Watches
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.controller.tasks import BackgroundTasks, PodLocks
from lamina.core.gpus import Gpu
from lamina.core.ledger import NOTHING
from lamina.group_plans import PlanBasis
from lamina.ledger.pods import ParsedPod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.clock import Clock
from lamina.ports.kube import GRANTS, PODS, Kube, Object
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clocks import SettableClock
from tests.worlds.objects import admitted_pod, inventory


class Bench:
    """Everything that a bind touches, without HTTP."""

    def __init__(
        self,
        kube: Kube | None = None,
        *,
        config: Config | None = None,
        clock: Clock | None = None,
        name: str = "me",
    ) -> None:
        self.kube = kube or FakeKube()
        self.clock: Any = clock or SettableClock(wall_time=1_700_000_000.9)
        self.leads = True
        self.configuration = LiveConfiguration(config or DEFAULT, "")
        self.cluster_state, self.quotas = ClusterState(self.configuration), ResourceQuotas()
        self.ledger, self.locks, self.background = self.cluster_state.ledger, PodLocks(), BackgroundTasks()
        self.context = Context(self.kube, self.clock, self.configuration, self.cluster_state, self.quotas)
        self.scheduler = Scheduler(self.cluster_state, self.quotas, self.configuration)
        self.assumed = AssumedPods(self.ledger, self.cluster_state.host, self.scheduler, self.context.now)
        self.watches = Watches(self.context)
        self.turns = PlacementLease(
            self.kube,
            self.clock,
            name,
            catch_up=self.watches.catch_up,
            catch_up_namespace=self.watches.catch_up_namespace,
            writes=self.watches.write_barrier,
        )
        self.binder = Binder(
            self.context,
            self.scheduler,
            self.assumed,
            placement_lease=self.turns,
            locks=self.locks,
            background=self.background,
            leading=lambda: self.leads,
        )

    def plan_basis(self) -> PlanBasis:
        """For plans without a coordinator."""
        return plan_basis(self.context, self.scheduler, NominatedPods(self.context))

    def coordinator(self) -> GangCoordinator:
        """A new one, for pod groups."""
        return GangCoordinator(self.context, self.scheduler, NominatedPods(self.context))

    def parse(self, pod: Object) -> ParsedPod:
        return self.context.parse(pod)

    def offer(self, node: str = "node-0", *given: Gpu) -> None:
        self.ledger.observe_inventory(inventory(node, *given))

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
        return self.ledger.totals.taken(node).get(gpu, NOTHING).memory_mib
