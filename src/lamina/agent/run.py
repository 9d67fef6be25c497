"""One node's agent, from its start to SIGTERM.

Everything is made, the disk is reconciled with the record, and then each part keeps its own loop. Another configuration
ends the loops, and everything is made anew in the same process. A part that fails with something that it does not know
takes the agent down, which is then started again and reconciles.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from lamina.agent import configuration
from lamina.agent.arbitrating import arbitrating
from lamina.agent.cluster import Cluster
from lamina.agent.current import Current
from lamina.agent.enforcers import DriverEnforcer, enforcing
from lamina.agent.libraries import install
from lamina.agent.marks.keeping import Keeper, keeping
from lamina.agent.marks.wanted import Seen
from lamina.agent.metrics.serving import Page, serving
from lamina.agent.mig.cutter import Cutter, cutting
from lamina.agent.mig.made import Made
from lamina.agent.mig.maker import Maker
from lamina.agent.mig.on_demand import OnDemand, sweeping_instances
from lamina.agent.monitor import Monitor, events_on_node
from lamina.agent.mps.daemons import keeping_mps
from lamina.agent.mps.sharing import sharing_mps
from lamina.agent.node_wishes import follow_node
from lamina.agent.nvidia_following import Kept, NvidiaFollower
from lamina.agent.nvidia_source import Applied
from lamina.agent.offer import Offer
from lamina.agent.plan import Places
from lamina.agent.publish import notice_removal, publishing
from lamina.agent.reconcile import reconcile
from lamina.agent.record import Record
from lamina.agent.release import sweeping
from lamina.agent.serving_kubelet import Doors, Kinds, offered_kinds
from lamina.agent.settings import AgentSettings
from lamina.agent.time_slices import Slicer, failures_on_node, slicing
from lamina.agent.uses import uses
from lamina.dialects.config import Config
from lamina.errors import LaminaError, Outside
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.files import Files
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.kubelet.podresources import KubeletPodResources
from lamina.ports.kubelet.registration import POD_RESOURCES_SOCKET
from lamina.ports.mps import ControlProgram, Mps
from lamina.ports.nvml import DriverNvml, Nvml
from lamina.ports.time_slices import NvidiaSmi

log = logging.getLogger(__name__)


async def run(settings: AgentSettings) -> None:
    """Be the agent of a node until SIGTERM or SIGINT. Raises BadInput, Outside for what prevents the start."""
    settings = settings.checked()
    kube = await connect(settings.kubeconfig, again_s=AGAIN_S)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    nvml = DriverNvml()
    try:
        files, mps = Files(), ControlProgram(settings.mps_control)
        config = await configuration.read(kube, settings.config, configuration.Kept(settings.configuration, files))
        await agent(settings, config, kube=kube, nvml=nvml, mps=mps, clock=SystemClock(), files=files, stop=stop)
    finally:
        await nvml.close()
        await kube.close()


class Rules(NamedTuple):
    """What the agent works by: our configuration, and NVIDIA's that holds on the node."""

    config: Config
    applied: Applied


async def agent(
    settings: AgentSettings,
    config: Config,
    *,
    kube: Kube,
    nvml: Nvml,
    mps: Mps,
    clock: Clock,
    files: Files,
    stop: asyncio.Event,
) -> None:
    """The agent behind its doors, until `stop` is set; `config` is where it begins. `settings` are checked."""
    with files.only_user(settings.state_dir):
        events = EventRecorder(kube, "lamina-agent", now=time.time)
        kept = Kept(settings.nvidia, files)
        nvidia = NvidiaFollower(kube, settings.node, kept, events, clock, namespace=settings.nvidia_namespace)
        rules: Rules | None = Rules(config, await nvidia.present(config))
        while rules is not None:
            parts = await _parts(settings, rules, kube=kube, nvml=nvml, mps=mps, clock=clock, files=files)
            log.info("The agent of %s has started", settings.node)
            rules = await _until(stop, parts, _others(settings, rules, kube, nvidia, clock, files))
        log.info("The agent of %s has stopped", settings.node)


async def _others(
    settings: AgentSettings, rules: Rules, kube: Kube, nvidia: NvidiaFollower, clock: Clock, files: Files
) -> Rules:
    """The next rules that differ from these."""
    kept = configuration.Kept(settings.configuration, files)
    config = asyncio.create_task(configuration.another(kube, settings.config, rules.config, clock, kept))
    applied = asyncio.create_task(nvidia.another(rules.config, rules.applied))
    try:
        await asyncio.wait([config, applied], return_when=asyncio.FIRST_COMPLETED)
        if config.done():
            return Rules(config.result(), await nvidia.present(config.result()))
        return Rules(rules.config, applied.result())
    finally:
        config.cancel()
        applied.cancel()
        await asyncio.gather(config, applied, return_exceptions=True)


async def _parts(
    settings: AgentSettings, rules: Rules, *, kube: Kube, nvml: Nvml, mps: Mps, clock: Clock, files: Files
) -> list[Coroutine[Any, Any, None]]:
    """The loops that make up the agent, after the disk was reconciled."""
    node, config, offered = settings.node, rules.config, offered_kinds(rules.config, rules.applied)
    assert settings.facade_dir is not None
    libraries = install(settings.facade_dir, settings.libraries, files)
    places = Places(settings.containers, settings.cdi_dir, settings.driver_dir, libraries)
    files.make_folder(settings.cdi_dir)
    record = Record(settings.record, files)
    cluster = Cluster(kube, node)
    await reconcile(record, cluster, places, files)
    pod_resources = KubeletPodResources(settings.kubelet_dir / POD_RESOURCES_SOCKET)
    offer = _offer(node, rules, offered, record)
    recorder = EventRecorder(kube, "lamina-agent", now=time.time)
    by_mps = sharing_mps(settings, rules.applied, offer, record, nvml, mps, recorder, files, clock)
    maker = Maker(nvml, Made(settings.made, files))
    on_demand = OnDemand.of(offer, maker, record, pod_resources, dismantle=not config.enabled)
    keeper = Keeper(kube=kube, node=node, config=config, offer=offer, nvml=nvml, now=time.time, gfd=rules.applied.gfd)
    doors = Doors(
        settings=settings,
        config=config,
        applied=rules.applied,
        offer=offer,
        record=record,
        pod_resources=pod_resources,
        cluster=cluster,
        places=places,
        on_demand=on_demand,
        files=files,
        clock=clock,
        joins=by_mps.joins,
        seen=keeper.seen,
    )
    enforcer = DriverEnforcer(
        nvml=nvml, cluster=cluster, record=record, containers=settings.containers, publish=offer.enforced
    )
    page = Page(node, offer, record, places, files, nvml, clock, named=config.metrics)
    before, tell = await cluster.published(), events_on_node(recorder, node)
    monitor = Monitor(nvml, offer, clock, poll_s=settings.poll_s, rules=config.health, before=before, tell=tell)
    await monitor.look()
    await by_mps.daemons.take_over()
    cutter = _cutter(doors, maker, kube, keeper.seen, recorder)
    with contextlib.suppress(Outside):
        await cutter.observe()
    return [
        *doors.registrations(),
        monitor.run(),
        follow_node(kube, node, config, offer, keeper.seen),
        keeping(keeper, clock, poll_s=settings.poll_s),
        keeping_mps(by_mps.daemons, clock, poll_s=settings.poll_s),
        cutting(cutter, clock, poll_s=settings.poll_s),
        sweeping_instances(on_demand, clock, poll_s=settings.poll_s),
        _of_time_slices(settings, config, offer, recorder, files, clock),
        publishing(cluster, offer.inventory, clock),
        notice_removal(kube, node, offer.inventory),
        enforcing(enforcer, config.enforcer, offer.undivided, clock, poll_s=settings.poll_s),
        sweeping(doors.releaser(), clock, poll_s=settings.poll_s),
        *([serving(page, settings.metrics, files, settings.metrics_address)] if settings.metrics else ()),
        arbitrating(places, files, clock, low_priority_percent=config.low_priority_percent),
    ]


def _of_time_slices(
    settings: AgentSettings, config: Config, offer: Offer, events: EventRecorder, files: Files, clock: Clock
) -> Coroutine[Any, Any, None]:
    """The loop that holds the length of turns."""
    slicer = Slicer(
        config.for_node(settings.node).time_slice,
        door=NvidiaSmi(),
        offer=offer,
        path=settings.time_slices,
        files=files,
        clock=clock,
        tell=failures_on_node(events, settings.node),
    )
    return slicing(slicer, clock, poll_s=settings.poll_s)


def _cutter(doors: Doors, maker: Maker, kube: Kube, seen: Current[Seen | None], events: EventRecorder) -> Cutter:
    return Cutter(
        node=doors.settings.node,
        config=doors.config,
        kube=kube,
        maker=maker,
        cluster=doors.cluster,
        pod_resources=doors.pod_resources,
        record=doors.record,
        offer=doors.offer,
        seen=seen,
        events=events,
        clock=doors.clock,
    )


def _offer(node: str, rules: Rules, offered: Kinds, record: Record) -> Offer:
    settings = rules.config.for_node(node)
    return Offer(
        node,
        settings,
        offered.tickets,
        offered.plain,
        mode=offered.mode,
        sharing=rules.applied.sharing,
        mig_strategy=rules.applied.mig_strategy(settings.mig_strategy),
        selected=rules.config.enabled and not rules.config.node_selector,
        used=lambda: uses(record.allocations, offered.mode),
        cordoned=None,
        governed=None,
        made=None,
    )


async def _until(
    stop: asyncio.Event, parts: list[Coroutine[Any, Any, None]], another: Coroutine[Any, Any, Rules]
) -> Rules | None:
    """Run all parts side by side until `stop` is set, or there are other rules, which are then returned.

    Raises what the first part failed with.
    """
    stopped, renewed = asyncio.create_task(stop.wait()), asyncio.create_task(another)
    tasks: set[asyncio.Task[Any]] = {stopped, renewed, *(asyncio.create_task(part) for part in parts)}
    try:
        running = tasks
        while not stopped.done() and not renewed.done():
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                failure = task.exception()
                if isinstance(failure, LaminaError):
                    raise failure
                if failure is not None:
                    raise RuntimeError("a part of the agent failed") from failure
        return None if stopped.done() else renewed.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
