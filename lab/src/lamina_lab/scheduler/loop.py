"""The scheduling loop: one pod after another gets a node, bindings run concurrently.

As in kube-scheduler, a pod is filtered and scored before the next one begins, so that each decision sees the one
before. A pod counts on its node from the decision on; a failed binding undoes that.
"""

import asyncio
import logging
from collections.abc import Collection

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, PODS, RESOURCE_CLAIMS, EventRecorder, Kube, NotFound, Object, Resource
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.event_timeout import wait_for_event
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.claims.binding import ClaimBinder
from lamina_lab.scheduler.claims.of_pod import ClaimsNotReady
from lamina_lab.scheduler.claims.plan import ClaimPlan, PodAllocation
from lamina_lab.scheduler.extender import Extender, ExtenderDown, ExtenderError
from lamina_lab.scheduler.placements import Placements
from lamina_lab.scheduler.preemption import Preemptor
from lamina_lab.scheduler.queue import requeue
from lamina_lab.scheduler.queue.backlog import Backlog, WaitingPod
from lamina_lab.scheduler.reporter import ERROR, UNSCHEDULABLE, SchedulingReporter
from lamina_lab.scheduler.rules import filters, reasons, scores
from lamina_lab.scheduler.rules.node_view import NodeView
from lamina_lab.scheduler.rules.pod_requests import requests

log = logging.getLogger(__name__)


class Unschedulable(Exception):
    """No node fits; the message is the one for the pod. Preemption does not help on `unresolvable` nodes."""

    def __init__(self, message: str, unresolvable: frozenset[str]) -> None:
        super().__init__(message)
        self.unresolvable = unresolvable


class SchedulingLoop:
    """Places the pods whose schedulerName is one of `names`; pods of other schedulers are only counted."""

    def __init__(
        self, kube: Kube, cache: Cache, clock: Clock, names: Collection[str], extender: Extender | None
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._clock = clock
        self._names = frozenset(names)
        self._extender = extender
        self._ignored = extender.config.ignored if extender else frozenset()
        self._reporter = SchedulingReporter(kube, clock, names)
        events = EventRecorder(kube, "default-scheduler", now=clock.wall)
        self._preemption = Preemptor(kube, extender, self._ignored, events)
        self._backlog = Backlog()
        self._placements = Placements(cache)
        self._claims = ClaimBinder(kube, cache, clock)
        self._wake = asyncio.Event()
        self._extender_was_down = False

    async def run(self) -> None:
        """Run until canceled."""
        stop = self._cache.listen(self._changed)
        try:
            await self._cache.synced()
            self._placements.nodes_changed()
            for pod in self._cache.list(PODS):
                if self._needs_node(pod):
                    self._backlog.put(pod, retry_now=True)
            async with asyncio.TaskGroup() as bindings:
                await self._serve(bindings)
        finally:
            stop()

    async def _serve(self, bindings: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            entry = self._backlog.take(self._clock.monotonic())
            if entry is None:
                due = self._backlog.next_due()
                await wait_for_event(self._wake, self._clock, None if due is None else due - self._clock.monotonic())
                continue
            await self._try(entry, bindings)

    async def _try(self, entry: WaitingPod, bindings: asyncio.TaskGroup) -> None:
        pod = entry.pod
        try:
            plan = self._claims.plan(pod)
            node = await self._choose(pod, plan)
        except ClaimsNotReady as error:
            await self._requeue(entry, UNSCHEDULABLE, str(error))
        except Unschedulable as error:
            await self._preempt(pod, error.unresolvable)
            await self._requeue(entry, UNSCHEDULABLE, str(error))
        except ExtenderError as error:
            self._extender_was_down |= isinstance(error, ExtenderDown)
            await self._requeue(entry, ERROR, str(error))
        except Exception:
            log.exception("Scheduling pod %s failed", objects.key(pod))
            self._backlog.park(entry, self._clock.monotonic(), error=True)
        else:
            if self._backlog.holds(objects.uid(pod)):  # else it was deleted in the meantime
                self._placements.assume(pod, node)
                devices = plan.on(node) if plan else None
                if devices:
                    self._claims.assume(pod, devices)
                bindings.create_task(self._bind(entry, node, devices))

    async def _choose(self, pod: Object, plan: ClaimPlan | None) -> str:
        """The best node. Raises Unschedulable or ExtenderError."""
        all_nodes = self._placements.views()
        why: dict[str, list[str]] = {}
        fit: list[NodeView] = []
        without_devices: set[str] = set()
        for view in all_nodes:
            by_claim = plan.by_claim(view) if plan else frozenset()
            if found := filters.reasons(pod, view, self._ignored | by_claim):
                why[view.name] = found
            elif plan and (reason := plan.reason(view, by_claim)):
                why[view.name] = [reason]
                without_devices.add(view.name)
            else:
                fit.append(view)
        extender = self._extender if self._extender and self._extender.is_interested(pod) else None
        unresolvable: frozenset[str] = frozenset()
        if extender and fit:
            fit, unresolvable = await self._filter(extender, pod, fit, why)
        if not fit:
            raise Unschedulable(reasons.sentence(len(all_nodes), why), unresolvable | without_devices)
        opinions: dict[str, float] = {}
        if extender and len(fit) > 1:
            opinions = await extender.prioritize(pod, [view.node for view in fit], self._clock.monotonic())
        return scores.best(fit, requests(pod), opinions)

    async def _filter(
        self, extender: Extender, pod: Object, fit: list[NodeView], why: dict[str, list[str]]
    ) -> tuple[list[NodeView], frozenset[str]]:
        answer = await extender.filter(pod, [view.node for view in fit], self._clock.monotonic())
        if self._extender_was_down:
            self._extender_was_down = False
            self._backlog.retry_parked(only=lambda entry: entry.error)
        left = [view for view in fit if view.name in answer.nodes]
        for view in fit:
            if view.name not in answer.nodes:
                why[view.name] = [answer.failed.get(view.name) or "the extender gave no reason"]
        return left, answer.unresolvable

    async def _preempt(self, pod: Object, unresolvable: frozenset[str]) -> None:
        try:
            await self._preemption.preempt(pod, self._placements.views(), unresolvable, self._clock.monotonic())
        except Outside as error:
            log.warning("Preemption for pod %s failed: %s", objects.key(pod), error)

    async def _bind(self, entry: WaitingPod, node: str, devices: PodAllocation | None) -> None:
        pod = entry.pod
        try:
            if devices:
                await self._claims.bind(pod, devices)
            if self._extender and self._extender.config.bind_verb and self._extender.is_interested(pod):
                await self._extender.bind(pod, node, self._clock.monotonic())
            else:
                namespace, uid = objects.namespace(pod), objects.uid(pod)
                await self._kube.bind(objects.name(pod), namespace=namespace, uid=uid, node=node)
        except NotFound:
            self._undo_placement(pod)
            self._backlog.drop(objects.uid(pod))
        except Outside as error:
            self._undo_placement(pod)
            self._extender_was_down |= isinstance(error, ExtenderDown)
            if devices:
                await self._claims.unreserve(pod)
            await self._requeue(entry, ERROR, str(error))
        except Exception:
            log.exception("Binding pod %s failed", objects.key(pod))
            self._undo_placement(pod)
            self._backlog.park(entry, self._clock.monotonic(), error=True)
            self._wake.set()
        else:
            await self._reporter.placed(pod, node)
        finally:
            if devices:
                self._claims.forget(pod, devices)

    def _undo_placement(self, pod: Object) -> None:
        """Free what the pod would have held. Pods whose binding failed wait out their back-off."""
        self._placements.forget(pod)
        self._backlog.retry_parked(only=lambda entry: not entry.error)
        self._wake.set()

    async def _requeue(self, entry: WaitingPod, reason: str, message: str) -> None:
        self._backlog.park(entry, self._clock.monotonic(), error=reason == ERROR)
        self._wake.set()
        if self._backlog.holds(objects.uid(entry.pod)):
            await self._reporter.waits(entry.pod, reason, message)

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if resource == PODS:
            self._pod_changed(before, after)
        else:
            if resource == NODES:
                self._placements.nodes_changed()
            if requeue.may_unblock_pods(resource, before, after):
                # A failed binding frees its own claims; that must not cut its back-off short.
                waits_out = resource == RESOURCE_CLAIMS
                served = self._claims.served() if resource == NODES else ()
                self._backlog.retry_parked(
                    only=lambda entry: (
                        not (waits_out and entry.error) and requeue.could_hold_pod(resource, after, entry.pod, served)
                    )
                )
        self._wake.set()

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and (after is None or objects.uid(before) != objects.uid(after)):
            self._backlog.drop(objects.uid(before))
        if self._placements.pod_changed(before, after):
            self._backlog.retry_parked()
        if after is None:
            return
        if self._needs_node(after):
            self._backlog.put(after, retry_now=requeue.needs_another_attempt(before, after))
        else:
            self._backlog.drop(objects.uid(after))

    def _needs_node(self, pod: Object) -> bool:
        spec = objects.spec(pod)
        return (
            spec.get("schedulerName") in self._names
            and not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and objects.is_active(pod)
        )
