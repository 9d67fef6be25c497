"""The parts of the controller, how they depend on each other, and the tasks that keep them running."""

import gc
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.admission.certificate_store import CertificateStore
from lamina.admission.registration import WebhookRegistration, certificate_names, client_config
from lamina.config_source.live import LiveConfiguration, follow_source
from lamina.controller.binding.binder import Binder
from lamina.controller.binding.orphan_grants import remove_orphan_grants
from lamina.controller.binding.placement_lease import DISTANCE_S, PlacementLease
from lamina.controller.capacity import inventory_status
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.capacity.inventory_status import InventoryStatuses
from lamina.controller.claims import gate as claim_gate
from lamina.controller.claims import templates as claim_templates
from lamina.controller.claims.classes import ClassMaker
from lamina.controller.claims.gate import ClaimGate
from lamina.controller.claims.templates import ClaimTemplates
from lamina.controller.compatibility import families
from lamina.controller.context import Context
from lamina.controller.eviction.borrowers import BorrowerEvictions
from lamina.controller.eviction.defragmentation import Defragmenter
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.grantless_holders import GrantlessHolders
from lamina.controller.eviction.group_victims import GroupVictims
from lamina.controller.eviction.idle_shares import IdleEvictions
from lamina.controller.eviction.policies import Policies
from lamina.controller.eviction.preemption import Preemption
from lamina.controller.eviction.stuck_pods import StuckPods
from lamina.controller.eviction.victims import PodVictims
from lamina.controller.extender.client_certificates import ExtenderTls, IssuedCertificates, MountedCertificates
from lamina.controller.extender.own_certificates import IssuedStore
from lamina.controller.extender.service import ExtenderService, Verbs
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.leadership.election import LeaderElection
from lamina.controller.leadership.label import LeaderLabel
from lamina.controller.leadership.readiness import Readiness
from lamina.controller.metrics import Metrics
from lamina.controller.observation.watches import Report, Watches
from lamina.controller.pending_pods import refused_pods
from lamina.controller.quota_status import update_statuses
from lamina.controller.replica_metrics import ReplicaMetrics, ReplicaState
from lamina.controller.resizer import Resizer
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.controller.scheduling.autoscaler_nodes import AutoscalerNodes
from lamina.controller.scheduling.best_node import BestNode
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.controller.scheduling.requeue import Requeue
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.controller.settings import ControllerSettings
from lamina.controller.tasks import BackgroundTasks, PodLocks
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.clock import Clock
from lamina.ports.kube import EventRecorder, Kube, Object, Resource
from lamina.ports.polling import poll
from lamina.ports.supervision import keep_running

_EXPIRE_S = 5.0
_RETRY_S = 1.0
_QUOTA_STATUS_S = 1.0
_RESIZE_S = 1.0


@dataclass(frozen=True)
class Controller:
    """All parts of one replica."""

    context: Context
    settings: ControllerSettings
    events: EventRecorder
    background: BackgroundTasks
    locks: PodLocks
    verbs: Verbs
    watches: Watches
    election: LeaderElection
    readiness: Readiness
    extender: ExtenderService
    extender_tls: ExtenderTls | None
    metrics: Metrics
    certificates: CertificateStore
    resizer: Resizer
    evictions: Policies


def assemble(
    kube: Kube, clock: Clock, settings: ControllerSettings, configuration: LiveConfiguration, events: EventRecorder
) -> Controller:
    """Build all parts. Nothing is read or written yet."""
    cluster_state = ClusterState(configuration, claims=ObservedClaims(settings.dra_driver))
    quotas = ResourceQuotas()
    context = Context(kube, clock, configuration, cluster_state, quotas)
    background, locks = BackgroundTasks(), PodLocks()
    watches = Watches(context, _reporter(background, events))
    election = LeaderElection(kube, clock, settings.identity or socket.gethostname())
    readiness = Readiness(watches, election)
    certificates = CertificateStore(kube, clock, certificate_names(kube.lamina_namespace, settings.admission_host))
    extender_tls = _extender_tls(kube, clock, settings)
    evictor = Evictor(kube, events, readiness.ready)
    grantless = GrantlessHolders(context, evictor, watches)
    metrics = _metrics(context, election, grantless, lambda: _served_certificates(certificates, extender_tls))
    scheduler = Scheduler(cluster_state, quotas, configuration)
    assumed = AssumedPods(cluster_state.ledger, cluster_state.host, scheduler, context.now)
    nominated = NominatedPods(context, watches.leaving_pods)
    gangs = GangCoordinator(context, scheduler, nominated)
    placement_lease = _placement_lease(kube, clock, election, watches)
    binder = Binder(
        context,
        scheduler,
        assumed,
        placement_lease=placement_lease,
        locks=locks,
        background=background,
        leading=lambda: election.leading,
    )
    victims, groups = PodVictims(context, gangs), GroupVictims(context, gangs)
    preemption = Preemption(context, evictor, victims, groups, nominated) if settings.preemption else None
    verbs = Verbs(
        scheduler=scheduler,
        gangs=gangs,
        victims=victims,
        nominated=nominated,
        preemption=preemption,
        binder=binder,
        assumed=assumed,
        autoscaler_nodes=AutoscalerNodes(scheduler, configuration, watches.exists),
        best_node=BestNode(scheduler, context.pending, watches.discouraged_nodes),
    )
    reviews = CallerReviews(kube, clock) if settings.protect_metrics else None
    return Controller(
        context=context,
        settings=settings,
        events=events,
        background=background,
        locks=locks,
        verbs=verbs,
        watches=watches,
        election=election,
        readiness=readiness,
        extender=ExtenderService(context, verbs, readiness, metrics, events, background, reviews),
        extender_tls=extender_tls,
        metrics=metrics,
        certificates=certificates,
        resizer=_resizer(context, scheduler, events, placement_lease, locks, watches, readiness),
        evictions=Policies(
            grantless=grantless,
            defragmentation=Defragmenter(context, evictor, watches, metrics, election.identity),
            idle_shares=IdleEvictions(context, evictor),
            borrowers=BorrowerEvictions(context, evictor),
            preemption=preemption,
            stuck=StuckPods(context, evictor, context.claim_usage) if settings.dra else None,
        ),
    )


def _reporter(background: BackgroundTasks, events: EventRecorder) -> Report:
    """Writes an event of each object that Lamina cannot use."""

    def report(resource: Resource, obj: Object, reason: str) -> None:
        background.start(events.record(resource, obj, "SetAside", f"Lamina cannot use it: {reason}", warning=True))

    return report


def _placement_lease(kube: Kube, clock: Clock, election: LeaderElection, watches: Watches) -> PlacementLease:
    return PlacementLease(
        kube,
        clock,
        election.identity,
        catch_up=watches.catch_up,
        catch_up_namespace=watches.catch_up_namespace,
        writes=watches.write_barrier,
        distance_s=DISTANCE_S,
    )


def _resizer(
    context: Context,
    scheduler: Scheduler,
    events: EventRecorder,
    placement_lease: PlacementLease,
    locks: PodLocks,
    watches: Watches,
    readiness: Readiness,
) -> Resizer:
    return Resizer(
        context,
        scheduler,
        events,
        placement_lease=placement_lease,
        locks=locks,
        pods=lambda: watches.resized_pods,
        leading=readiness.ready,
    )


def _metrics(
    context: Context,
    election: LeaderElection,
    grantless: GrantlessHolders,
    certificates: Callable[[], Mapping[str, bytes]],
) -> Metrics:
    ledger, configuration = context.ledger, context.configuration
    metrics = Metrics(
        ledger,
        context.set_aside,
        lambda: families(ledger, context.quotas, configuration.value),
        lambda: election.leading,
    )
    metrics.registry.register(ReplicaMetrics(lambda: _state(context, election, grantless, certificates())))
    return metrics


def _state(
    context: Context,
    election: LeaderElection,
    grantless: GrantlessHolders,
    certificates: Mapping[str, bytes],
) -> ReplicaState:
    """The replica as its metrics show it."""
    return ReplicaState(
        leading=election.leading,
        transitions=election.transitions,
        configuration_refused=bool(context.configuration.refusal),
        certificates=certificates,
        pending=refused_pods(context.pending, context.now()) if election.leading else {},
        grantless=grantless.named if election.leading else {},
    )


def _served_certificates(admission: CertificateStore, extender: ExtenderTls | None) -> Mapping[str, bytes]:
    """PEM texts by purpose."""
    certificate = admission.served
    texts = {
        "admission": certificate.certificate if certificate else b"",
        "extender": extender.served if extender else b"",
    }
    return {purpose: text for purpose, text in texts.items() if text}


def _extender_tls(kube: Kube, clock: Clock, settings: ControllerSettings) -> ExtenderTls | None:
    if settings.extender is None:
        return None
    if settings.extender_tls is not None:
        return ExtenderTls(MountedCertificates(settings.extender_tls))
    return ExtenderTls(IssuedCertificates(IssuedStore(kube, clock)))


def tasks_of(controller: Controller) -> list[Coroutine[Any, Any, None]]:
    """What runs until the controller stops, once it listens."""
    context, settings = controller.context, controller.settings
    kube, clock, configuration = context.kube, context.clock, context.configuration
    address = client_config(kube.lamina_namespace, settings.admission)
    registration = WebhookRegistration(
        kube, clock, configuration, controller.certificates, address, claims=settings.dra
    )
    label = LeaderLabel(kube, clock, controller.election.identity)
    verbs, ready = controller.verbs, controller.readiness.ready
    requeue = Requeue(context, verbs.assumed, ready)

    statuses = InventoryStatuses(
        kube, context.cluster_state, controller.watches.inventory_statuses, clock, verbs.nominated.rooms
    )

    def guarded(every_s: float, step: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """A loop of what only a ready replica does."""

        async def if_ready() -> None:
            if ready():
                await step()

        return lambda: _every(clock, every_s, if_ready)

    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "configuration": lambda: follow_source(
            settings.config, kube, clock, configuration, controller.events, context.set_aside
        ),
        "watches": controller.watches.run,
        "election": controller.election.run,
        "leader label": lambda: label.run(ready),
        "webhook registration": lambda: registration.run(ready),
        "changes of the registration": registration.watch,
        "holds": lambda: _every(clock, _EXPIRE_S, lambda: _expire_holds(context)),
        "waiting pods": lambda: _every(clock, _RETRY_S, requeue.reconcile),
        "pod groups": lambda: _every(clock, _EXPIRE_S, lambda: _expire_gangs(controller)),
        "orphan grants": guarded(_EXPIRE_S, lambda: remove_orphan_grants(context, controller.locks)),
        "sizes of containers": lambda: _every(clock, _RESIZE_S, controller.resizer.reconcile),
        "quota statuses": guarded(
            _QUOTA_STATUS_S,
            lambda: update_statuses(kube, context.quotas, context.ledger, configuration.value, context.set_aside),
        ),
        "inventory statuses": guarded(inventory_status.EVERY_S, statuses.step),
        "freezing": lambda: _freeze_after_sync(controller.watches),
        "packing policy": lambda: _learn_after_sync(controller),
        **controller.evictions.loops(clock),
    }
    if settings.dra:
        loops["watch resourceclaims"] = controller.watches.run_claims
        loops["watch deviceclasses"] = controller.watches.run_classes
        classes = ClassMaker(context, settings.dra_driver, ready)
        loops["device classes"] = classes.run
        usage = context.claim_usage
        gate = ClaimGate(context, usage, controller.events, ready)
        loops["pods with a gate for claims"] = gate.run
        loops["gates for claims"] = lambda: _every(clock, claim_gate.EVERY_S, gate.step)
        generated = ClaimTemplates(context, controller.events, ready)
        loops["pods with generated claims"] = generated.run
        loops["generated claims"] = lambda: _every(clock, claim_templates.EVERY_S, generated.step)
    if (tls := controller.extender_tls) is not None:
        loops["extender certificates"] = lambda: tls.follow(clock)
    return [keep_running(name, loop, clock, context.set_aside) for name, loop in loops.items()]


def _every(clock: Clock, seconds: float, step: Callable[[], Awaitable[None]]) -> Awaitable[None]:
    return poll(step, clock, every_s=seconds, delay_s=seconds)


async def _expire_holds(context: Context) -> None:
    context.ledger.expire(context.now())


async def _expire_gangs(controller: Controller) -> None:
    controller.verbs.gangs.expire()


async def _freeze_after_sync(watches: Watches) -> None:
    """Exclude what is read at the start from garbage collection: a pass over a large cluster takes up to 0.5 s."""
    gc.disable()
    try:
        await watches.synced.wait()
        gc.freeze()
    finally:
        gc.enable()


async def _learn_after_sync(controller: Controller) -> None:
    """Learn the packing policy, beginning with the pods that exist at the start."""
    await controller.watches.synced.wait()
    await controller.verbs.scheduler.packing.run(controller.context.clock)
