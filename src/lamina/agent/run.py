"""The agent of one node, from its start to SIGTERM.

All parts are made, the disk is reconciled with the record, and then each part runs its own loop. Another configuration
ends the loops, and all parts are made again in the same process. A part that fails is set aside for a moment and starts
again, while the others go on.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from lamina.agent.chargeback.pod_owners import PodOwners
from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.cleanup.pod_watch import PodWatch
from lamina.agent.cleanup.release import Releaser
from lamina.agent.cleanup.survivors import PodProcesses, SurvivorPublisher
from lamina.agent.compat.reconciler import CompatReconciler
from lamina.agent.containers.file_mount import provide_reserve, report_flags
from lamina.agent.containers.libraries import FacadeLibraries, install_libraries
from lamina.agent.containers.paths import HostPaths
from lamina.agent.context import NodeContext
from lamina.agent.devices.tickets import ticket_kinds
from lamina.agent.devices.usage import DevicesInUse, devices_in_use
from lamina.agent.inventory.monitor import CheckedNvml, GpuMonitor, health_events
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.publisher import InventoryPublisher, InventoryWatch
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.kubelet.claim_plugin import ClaimHealth, ClaimPlugin, ClaimRegistration
from lamina.agent.kubelet.plugins import Mechanisms, MigPlugins, Plugins, advertised_kinds
from lamina.agent.limits.arbitration import ArbitrationLoop
from lamina.agent.limits.container_resizer import ContainerResizer
from lamina.agent.limits.driver_limits import DriverLimits
from lamina.agent.limits.driver_reports import DriverReports
from lamina.agent.limits.memory_refusals import FileEvents, RefusalEvents
from lamina.agent.limits.process_owners import ProcessOwners
from lamina.agent.metrics.accountant import Accountant
from lamina.agent.metrics.node_readings import NodeReader
from lamina.agent.metrics.server import MetricsPage, MetricsServer
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mig.label_partitioner import LabelPartitioner
from lamina.agent.mig.maker import MigMaker, Ownership
from lamina.agent.mps.sharing import mps_root, mps_sharing
from lamina.agent.node.configuration import ConfigurationSource
from lamina.agent.node.watch import NodeWatch
from lamina.agent.nvidia.config_watch import NvidiaConfigWatch, last_good_config
from lamina.agent.nvidia.time_slices import TimeSliceManager, time_slice_events
from lamina.agent.resource_claims.binding import ClaimBinding
from lamina.agent.resource_claims.daemons import ClaimDaemons
from lamina.agent.resource_claims.dra_devices import Doors, DraDevices
from lamina.agent.resource_claims.plan import ClaimInstances, ClaimSharing
from lamina.agent.resource_claims.preparer import ClaimPreparer
from lamina.agent.resource_claims.publisher import SlicePublisher, SliceWatch
from lamina.agent.resource_claims.release import ClaimReleaser
from lamina.agent.state.cluster import ClusterClient
from lamina.agent.state.nvidia_config import AppliedConfig
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.agent.state.record import Record
from lamina.agent.state.settings import AgentSettings
from lamina.configuration import Config
from lamina.core.gpus import Mode
from lamina.errors import Outside
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.files import Files, kept_open
from lamina.ports.host import Host, LinuxHost
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.kubelet.allocations import KubeletPodResources
from lamina.ports.kubelet.servers import POD_RESOURCES_SOCKET
from lamina.ports.mounts import LinuxMounts, Mounts
from lamina.ports.mps import Mps, MpsServiceClient
from lamina.ports.nvml import DriverNvml, Nvml
from lamina.ports.set_aside import SetAside
from lamina.ports.supervision import keep_running
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


class Part(Protocol):
    """A part of the agent, which runs until it is canceled. What must outlive an error is an attribute."""

    async def run(self) -> None: ...


class Rules(NamedTuple):
    """The configurations that apply to the node: Lamina's and that of NVIDIA's plugin."""

    config: Config
    nvidia: AppliedConfig


async def run(settings: AgentSettings) -> None:
    """Run the agent of a node until SIGTERM or SIGINT. Raises BadInput or Outside if it cannot start."""
    settings = settings.checked()
    kube = await connect(settings.kubeconfig, again_s=AGAIN_S)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    nvml = DriverNvml()
    ports = AgentPorts(
        kube=kube,
        nvml=nvml,
        mps=MpsServiceClient(settings.mps_socket),
        clock=SystemClock(),
        files=Files(),
        host=LinuxHost(),
    )
    try:
        config = await configuration_source(settings, ports).read()
        await run_agent(settings, config, ports, stop)
    finally:
        await nvml.close()
        await kube.close()


def configuration_source(settings: AgentSettings, ports: AgentPorts) -> ConfigurationSource:
    return ConfigurationSource(
        ports.kube, settings.config, ports.clock, settings.configuration, ports.files, ports.aside
    )


async def run_agent(settings: AgentSettings, config: Config, ports: AgentPorts, stop: asyncio.Event) -> None:
    """Run the agent until `stop` is set, starting with `config`. `settings` are checked."""
    assert settings.facade_dir is not None
    with ports.files.only_user(settings.state_dir):
        report_flags(settings.containers, ports.mounts)
        provide_reserve(settings.containers, ports.mounts)
        libraries = install_libraries(settings.facade_dir, settings.libraries, ports.files, settings.driver)
        with kept_open(settings.libraries):
            await _run_configurations(settings, config, ports, libraries, stop)


async def _run_configurations(
    settings: AgentSettings, config: Config, ports: AgentPorts, libraries: FacadeLibraries, stop: asyncio.Event
) -> None:
    """Run the agent under one configuration after the other, until `stop` is set."""
    nvidia = NvidiaConfigWatch(
        ports.kube,
        settings.node,
        last_good_config(settings.nvidia, ports.files),
        EventRecorder(ports.kube, COMPONENT, now=ports.clock.wall),
        ports.clock,
        ports.aside,
        namespace=settings.nvidia_namespace,
    )
    first = Rules(config, await nvidia.current(config))
    source = configuration_source(settings, ports)
    work: Callable[[], Awaitable[None]] = partial(_run_parts, settings, first, ports, libraries)
    rules: Rules | None = first
    while rules is not None:
        rules = await _until_changed(work, partial(_next_rules, rules, source, nvidia), stop, ports)
        if rules is not None:
            # At the start a sentence says what is wrong. Later the agent goes on, because the next rules may be better.
            run_next = partial(_run_parts, settings, rules, ports, libraries)
            work = partial(keep_running, "start", run_next, ports.clock, ports.aside)
    log.info("The agent of node %s has stopped", settings.node)


async def _until_changed(
    work: Callable[[], Awaitable[None]],
    following: Callable[[], Awaitable[Rules]],
    stop: asyncio.Event,
    ports: AgentPorts,
) -> Rules | None:
    """Run `work` until `stop` is set, or `following` returns other rules, which are returned.

    Raises what `work` raises.
    """
    stopped = asyncio.create_task(stop.wait())
    next_rules = asyncio.create_task(keep_running("configuration", following, ports.clock, ports.aside))
    working = asyncio.ensure_future(work())
    tasks: list[asyncio.Future[Any]] = [stopped, next_rules, working]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return None if stopped.done() else next_rules.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_parts(settings: AgentSettings, rules: Rules, ports: AgentPorts, libraries: FacadeLibraries) -> None:
    """Make all parts and run them concurrently until this is canceled. Raises what prevents that they are made."""
    parts = await _make_parts(_context(settings, rules, ports, libraries), ports)
    log.info("The agent of node %s has started", settings.node)
    async with asyncio.TaskGroup() as group:
        for name, part in parts.items():
            group.create_task(keep_running(name, part.run, ports.clock, ports.aside))


async def _next_rules(rules: Rules, source: ConfigurationSource, nvidia: NvidiaConfigWatch) -> Rules:
    """The next rules that differ from these."""
    config = asyncio.create_task(source.next_change(rules.config))
    applied = asyncio.create_task(nvidia.next_change(rules.config, rules.nvidia))
    try:
        await asyncio.wait([config, applied], return_when=asyncio.FIRST_COMPLETED)
        if config.done():
            return Rules(config.result(), await nvidia.current(config.result()))
        return Rules(rules.config, applied.result())
    finally:
        config.cancel()
        applied.cancel()
        await asyncio.gather(config, applied, return_exceptions=True)


async def _make_parts(node: NodeContext, ports: AgentPorts) -> dict[str, Part]:
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
    mechanisms = Mechanisms(on_demand, mps.edits, mps.for_grants, ports.host)
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
    claims = ClaimSharing(ClaimDaemons(node, offers, mps.daemons.lifecycle, mps_root(node)), time_slices)
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
        **_claim_parts(node, offers, doors, claims, ClaimInstances(node, on_demand)),
    }
    if node.settings.metrics:
        accountant = Accountant(node, offers, NodeReader(node, offers, ports.host), owners)
        page = MetricsPage(node, offers, ports.host, lambda: accountant.written)
        parts |= {"accounts": accountant, "metrics": MetricsServer(page, node.settings.metrics, node)}
    return parts


def _context(settings: AgentSettings, rules: Rules, ports: AgentPorts, libraries: FacadeLibraries) -> NodeContext:
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
    return NodeOfferStore(state, lambda: _in_use(node, kinds.mode))


def _in_use(node: NodeContext, mode: Mode) -> DevicesInUse:
    return devices_in_use(node.record.allocations, mode, claims=node.record.held_claims)


def _claim_parts(
    node: NodeContext, offers: NodeOfferStore, doors: Doors, sharing: ClaimSharing, instances: ClaimInstances
) -> dict[str, Part]:
    """The parts that serve ResourceClaims."""
    if not node.settings.dra:
        return {}
    offer = DraDevices(node, offers, doors)
    preparer = ClaimPreparer(node, offer, offers, sharing, instances)
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
