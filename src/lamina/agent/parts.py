"""The parts of one agent, made for one configuration, and what they work with."""

import contextlib
import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.cleanup.pod_watch import PodWatch
from lamina.agent.cleanup.release import Releaser
from lamina.agent.cleanup.survivors import PodProcesses, SurvivorPublisher
from lamina.agent.compat.node_watch import NodeWatch
from lamina.agent.compat.reconciler import CompatReconciler
from lamina.agent.containers.paths import FacadeLibraries, HostPaths, write_limits
from lamina.agent.context import NodeContext
from lamina.agent.inventory.monitor import CheckedNvml, GpuMonitor, health_events
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.publisher import InventoryPublisher, InventoryWatch
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.inventory.usage import DevicesInUse, devices_in_use
from lamina.agent.kubelet.claim_plugin import ClaimHealth, ClaimPlugin, ClaimRegistration
from lamina.agent.kubelet.plugins import Mechanisms, MigPlugins, Plugins, advertised_kinds
from lamina.agent.limits.arbitration import ArbitrationLoop
from lamina.agent.limits.container_resizer import ContainerResizer
from lamina.agent.limits.driver_limits import DriverLimits
from lamina.agent.limits.driver_reports import DriverReports, ProcessOwners
from lamina.agent.limits.memory_refusals import FileEvents, RefusalEvents
from lamina.agent.metrics.accountant import Accountant
from lamina.agent.metrics.collection import NodeReader
from lamina.agent.metrics.server import MetricsPage, MetricsServer
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mig.label_partitioner import LabelPartitioner
from lamina.agent.mig.maker import MigMaker, Ownership
from lamina.agent.mps.lifecycle import DaemonLifecycle
from lamina.agent.mps.sharing import mps_root, mps_sharing
from lamina.agent.nvidia.time_slices import TimeSliceManager, time_slice_events
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.resource_claims.binding import ClaimBinding
from lamina.agent.resource_claims.daemons import ClaimDaemons
from lamina.agent.resource_claims.dra_devices import Doors, DraDevices
from lamina.agent.resource_claims.plan import ClaimSharing
from lamina.agent.resource_claims.preparer import ClaimPreparer
from lamina.agent.resource_claims.publisher import SlicePublisher, SliceWatch
from lamina.agent.resource_claims.release import ClaimReleaser
from lamina.agent.state.cluster import ClusterClient
from lamina.agent.state.observed import AppliedConfig, Observable, ObservedNode, PodOwners, Refusals
from lamina.agent.state.record import Record
from lamina.agent.state.settings import AgentSettings
from lamina.configuration import Config
from lamina.core.gpus import Mode
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.host import Host
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kubelet.allocations import KubeletPodResources
from lamina.ports.kubelet.servers import POD_RESOURCES_SOCKET
from lamina.ports.mounts import LinuxMounts, Mounts
from lamina.ports.mps import Mps
from lamina.ports.nvml import Nvml
from lamina.ports.set_aside import SetAside
from lamina.ports.time_slices import NvidiaSmi

log = logging.getLogger(__name__)

COMPONENT = "lamina-agent"


@dataclass(frozen=True, kw_only=True)
class AgentPorts:
    """The agent's interfaces to the outside, and what it has set aside."""

    kube: Kube
    nvml: Nvml
    mps: Mps
    clock: Clock
    files: Files
    host: Host
    mounts: Mounts = field(default_factory=LinuxMounts)
    aside: SetAside = field(default_factory=lambda: SetAside(log))

    @cached_property
    def refusals(self) -> Refusals:
        """Which configurations of the node are refused."""
        return Refusals(self.aside)


class Part(Protocol):
    """A part of the agent, which runs until it is canceled. What must outlive an error is an attribute."""

    async def run(self) -> None: ...


class Rules(NamedTuple):
    """The configurations that apply to the node: Lamina's and that of NVIDIA's plugin."""

    config: Config
    nvidia: AppliedConfig


async def make_parts(node: NodeContext, ports: AgentPorts) -> dict[str, Part]:
    """Make the parts of the agent, by name, and reconcile the disk."""
    await reconcile(node)
    offers = _offers(node)
    observed: Observable[ObservedNode | None] = Observable(None)
    mps = mps_sharing(node, offers, ports.mps)
    maker = MigMaker(node.nvml, Ownership(node.settings.made, node.files))
    on_demand = GrantPartitioner(node, offers, maker)
    processes = PodProcesses(node, ports.host)
    releaser = Releaser(node, _resources(node.config, node.nvidia), processes)
    survivors = SurvivorPublisher(node, processes, publish=lambda pods: offers.update(survivors=pods))
    sizes = ContainerResizer(node, ProcessOwners(node, ports.host), lambda applied: offers.update(resized=applied))
    steps = PreparationSteps(node, on_demand, mps.for_grants, write_limits)
    mechanisms = Mechanisms(steps, on_demand.require_unpartitioned, mps.edits, mps.for_grants, ports.host)
    plugins = Plugins(node, offers, mechanisms, releaser, observed)
    monitor = await _monitor(node, offers)
    await monitor.reconcile()
    await mps.daemons.take_over()
    file_events, confirmed = FileEvents(node), DriverReports(node, ports.host)
    owners, doors = PodOwners(node.config.pricing.labels), Doors(node, offers)
    partitioner = LabelPartitioner(node, offers, maker, observed)
    time_slices = TimeSliceManager(
        node,
        offers,
        NvidiaSmi(),
        wanted=node.config.for_node(node.node).time_slice,
        report=time_slice_events(node.events, node.node),
    )
    publisher = InventoryPublisher(node.cluster, offers.inventory, node.clock)
    with contextlib.suppress(Outside):
        await partitioner.advertise()
    parts: dict[str, Part] = {
        **plugins.registrations(),
        "plugins of MIG devices": MigPlugins(plugins, offers, node),
        "GPUs": monitor,
        "node": NodeWatch(node, offers, observed),
        "compatibility": CompatReconciler(node, offers, observed, ports.host),
        "MPS daemons": mps.daemons,
        "MIG devices": partitioner,
        "MIG instances": on_demand,
        "time slices": time_slices,
        "inventory": publisher,
        "watch of the inventory": InventoryWatch(node.kube, node.clock, node.node, publisher, offers.inventory),
        "limits of the driver": DriverLimits(
            node,
            gpus=lambda: offers.state.unpartitioned,
            publish=lambda containers: offers.update(driver_limited=containers),
        ),
        "release": releaser,
        "surviving processes": survivors,
        "pods": PodWatch(node, survivors, sizes, owners, doors),
        "sizes of containers": sizes,
        "events of limit files": file_events,
        "refusals of memory": RefusalEvents(node),
        "work on shared GPUs": confirmed,
        "arbitration": ArbitrationLoop(
            node,
            ports.host,
            confirmed.confirmation,
            offers.memory_bytes,
            file_events.report,
            publish=lambda pods: offers.update(displaced=pods),
        ),
        **_claim_parts(node, offers, doors, mps.daemons.lifecycle, time_slices, steps),
    }
    if node.settings.metrics:
        accountant = Accountant(node, offers, NodeReader(node, offers, ports.host), owners)
        page = MetricsPage(node, offers, ports.host, lambda: accountant.written)
        parts |= {"accounts": accountant, "metrics": MetricsServer(page, node.settings.metrics, node)}
    return parts


def node_context(settings: AgentSettings, rules: Rules, ports: AgentPorts, libraries: FacadeLibraries) -> NodeContext:
    ports.files.make_folder(settings.cdi_dir)
    ports.files.make_private_folder(settings.containers)
    return NodeContext(
        settings=settings,
        config=rules.config,
        nvidia=rules.nvidia,
        clock=ports.clock,
        files=ports.files,
        kube=ports.kube,
        nvml=ports.nvml,
        events=EventRecorder(ports.kube, COMPONENT, now=ports.clock.wall),
        cluster=ClusterClient(ports.kube, settings.node, ports.aside),
        pod_resources=KubeletPodResources(settings.kubelet_dir / POD_RESOURCES_SOCKET),
        paths=HostPaths(settings.containers, settings.cdi_dir, settings.driver_dir, libraries),
        record=Record(settings.record, ports.files),
        aside=ports.aside,
        refusals=ports.refusals,
    )


def _offers(node: NodeContext) -> NodeOfferStore:
    """Nothing is advertised before all parts have reported."""
    kinds, settings = advertised_kinds(node.config, node.nvidia), node.config.for_node(node.node)
    state = OfferState(
        node=node.node,
        settings=settings,
        ticket_kinds=kinds.tickets,
        native_kinds=kinds.native,
        mode=kinds.mode,
        sharing=node.nvidia.sharing,
        mig_strategy=node.nvidia.mig_strategy(settings.mig_strategy),
        selected=node.config.enabled and not node.config.nodes.selector,
        cordoned=None,
        labelled=None,
        on_demand=None,
        survivors=None,
    )
    offers = NodeOfferStore(state, lambda: _in_use(node, kinds.mode))
    node.refusals.publish_to(lambda refused: offers.update(refused=refused))
    return offers


def _in_use(node: NodeContext, mode: Mode) -> DevicesInUse:
    return devices_in_use(node.record.allocations, mode, claims=node.record.held_claims)


def _claim_parts(
    node: NodeContext,
    offers: NodeOfferStore,
    doors: Doors,
    lifecycle: DaemonLifecycle,
    time_slices: TimeSliceManager,
    steps: PreparationSteps,
) -> dict[str, Part]:
    """The parts that serve ResourceClaims."""
    if not node.settings.dra:
        return {}
    sharing = ClaimSharing(ClaimDaemons(node, offers, lifecycle, mps_root(node)), time_slices)
    offer = DraDevices(node, offers, doors)
    preparer = ClaimPreparer(node, offer, offers, sharing, steps)
    health = ClaimHealth(node, offer, offers)
    watch = SliceWatch(node)
    binding: dict[str, Part] = {"claims to bind": ClaimBinding(node, preparer)} if node.settings.dra_binding else {}
    return {
        **binding,
        "MPS daemons of claims": sharing.daemons,
        "driver of claims": ClaimRegistration(node, ClaimPlugin(node, preparer), health),
        "resource slices": SlicePublisher(node, offer, watch),
        "published slices": watch,
        "release of claims": ClaimReleaser(node, preparer),
    }


def _resources(config: Config, nvidia: AppliedConfig) -> set[str]:
    """The resources that are not those of MIG devices."""
    native = advertised_kinds(config, nvidia).native
    return {*(kind.resource for kind in ticket_kinds(config)), *(kind.resource for kind in native)}


async def _monitor(node: NodeContext, offers: NodeOfferStore) -> GpuMonitor:
    before = await node.cluster.get_inventory()
    return GpuMonitor(
        CheckedNvml(node.nvml, offers.state.settings, node.aside),
        offers,
        node.clock,
        poll_s=node.settings.poll_s,
        rules=node.config.health,
        before=before,
        report=health_events(node.events, node.node),
    )
