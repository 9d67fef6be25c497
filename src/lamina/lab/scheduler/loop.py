"""The scheduling loop: one pod after another gets a node, bindings run beside it.

Filters and scores of one pod are finished before the next one begins, as in kube-scheduler, so each decision sees the
one before. A pod counts on its node from the decision on; a binding that fails takes that back.
"""

import asyncio
import logging
from collections.abc import Collection

from lamina.errors import Outside
from lamina.lab.informer import objects
from lamina.lab.informer.cache import Cache
from lamina.lab.informer.objects import Object
from lamina.lab.informer.woken import woken
from lamina.lab.scheduler import filters, hopes, reasons, scores
from lamina.lab.scheduler.backlog import Backlog, Waiting
from lamina.lab.scheduler.extender import Extender, ExtenderDown, ExtenderError
from lamina.lab.scheduler.node_view import NodeView
from lamina.lab.scheduler.placed import Placed
from lamina.lab.scheduler.pod_requests import requests
from lamina.lab.scheduler.preempting import Preempting
from lamina.lab.scheduler.verdicts import ERROR, UNSCHEDULABLE, Verdicts
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, PODS, EventRecorder, Kube, NotFound, Resource

log = logging.getLogger(__name__)


class Unfit(Exception):
    """No node will do; the message is the sentence for the pod. `hopeless` are nodes that no eviction would mend."""

    def __init__(self, message: str, hopeless: frozenset[str]) -> None:
        super().__init__(message)
        self.hopeless = hopeless


class Scheduler:
    """Places the pods that ask for one of `names`; pods of other schedulers are only counted."""

    def __init__(
        self, kube: Kube, cache: Cache, clock: Clock, names: Collection[str], extender: Extender | None
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._clock = clock
        self._names = frozenset(names)
        self._extender = extender
        self._ignored = extender.config.ignored if extender else frozenset()
        self._verdicts = Verdicts(kube, clock, names)
        events = EventRecorder(kube, "default-scheduler", now=clock.wall)
        self._preempting = Preempting(kube, extender, self._ignored, events)
        self._backlog = Backlog()
        self._placed = Placed(cache)
        self._wake = asyncio.Event()
        self._extender_was_down = False

    async def run(self) -> None:
        """Until cancelled."""
        stop = self._cache.listen(self._changed)
        try:
            await self._cache.synced()
            self._placed.nodes_changed()
            for pod in self._cache.list(PODS):
                if self._wants_node(pod):
                    self._backlog.put(pod, helps=True)
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
                await woken(self._wake, self._clock, None if due is None else due - self._clock.monotonic())
                continue
            await self._try(entry, bindings)

    async def _try(self, entry: Waiting, bindings: asyncio.TaskGroup) -> None:
        pod = entry.pod
        try:
            node = await self._choose(pod)
        except Unfit as error:
            await self._make_room(pod, error.hopeless)
            await self._put_back(entry, UNSCHEDULABLE, str(error))
        except ExtenderError as error:
            self._extender_was_down |= isinstance(error, ExtenderDown)
            await self._put_back(entry, ERROR, str(error))
        except Exception:
            log.exception("Scheduling pod %s failed", objects.key(pod))
            self._backlog.park(entry, self._clock.monotonic(), error=True)
        else:
            if self._backlog.holds(objects.uid(pod)):  # else it went away while it was thought about
                self._placed.assume(pod, node)
                bindings.create_task(self._bind(entry, node))

    async def _choose(self, pod: Object) -> str:
        """The best node. Raises Unfit or ExtenderError."""
        everyone = self._placed.views()
        why: dict[str, list[str]] = {}
        fit: list[NodeView] = []
        for view in everyone:
            found = filters.reasons(pod, view, self._ignored)
            if found:
                why[view.name] = found
            else:
                fit.append(view)
        extender = self._extender if self._extender and self._extender.is_interested(pod) else None
        hopeless: frozenset[str] = frozenset()
        if extender and fit:
            fit, hopeless = await self._filter(extender, pod, fit, why)
        if not fit:
            raise Unfit(reasons.sentence(len(everyone), why), hopeless)
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
            self._backlog.something_happened(only=lambda entry: entry.error)
        left = [view for view in fit if view.name in answer.nodes]
        for view in fit:
            if view.name not in answer.nodes:
                why[view.name] = [answer.failed.get(view.name) or f"extender {extender.config.url} said no"]
        return left, answer.unresolvable

    async def _make_room(self, pod: Object, hopeless: frozenset[str]) -> None:
        try:
            await self._preempting.make_room(pod, self._placed.views(), hopeless, self._clock.monotonic())
        except Outside as error:
            log.warning("No room could be made for pod %s: %s", objects.key(pod), error)

    async def _bind(self, entry: Waiting, node: str) -> None:
        pod = entry.pod
        try:
            if self._extender and self._extender.config.bind_verb and self._extender.is_interested(pod):
                await self._extender.bind(pod, node, self._clock.monotonic())
            else:
                place = {"namespace": objects.namespace(pod), "uid": objects.uid(pod), "node": node}
                await self._kube.bind(objects.name(pod), **place)
        except NotFound:
            self._take_back(pod)
            self._backlog.drop(objects.uid(pod))
        except Outside as error:
            self._take_back(pod)
            self._extender_was_down |= isinstance(error, ExtenderDown)
            await self._put_back(entry, ERROR, f"binding to {node} failed: {error}")
        except Exception:
            log.exception("Binding pod %s failed", objects.key(pod))
            self._take_back(pod)
            self._backlog.park(entry, self._clock.monotonic(), error=True)
            self._wake.set()
        else:
            await self._verdicts.placed(pod, node)

    def _take_back(self, pod: Object) -> None:
        """What the pod would have held is free for others again."""
        self._placed.forget(pod)
        self._backlog.something_happened()
        self._wake.set()

    async def _put_back(self, entry: Waiting, reason: str, message: str) -> None:
        self._backlog.park(entry, self._clock.monotonic(), error=reason == ERROR)
        self._wake.set()
        if self._backlog.holds(objects.uid(entry.pod)):
            await self._verdicts.waits(entry.pod, reason, message)

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if resource == PODS:
            self._pod_changed(before, after)
        else:
            if resource == NODES:
                self._placed.nodes_changed()
            if hopes.may_help(resource, before, after):
                self._backlog.something_happened(only=lambda entry: hopes.may_take(resource, after, entry.pod))
        self._wake.set()

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and (after is None or objects.uid(before) != objects.uid(after)):
            self._backlog.drop(objects.uid(before))
        if self._placed.pod_changed(before, after):
            self._backlog.something_happened()
        if after is None:
            return
        if self._wants_node(after):
            self._backlog.put(after, helps=hopes.asks_anew(before, after))
        else:
            self._backlog.drop(objects.uid(after))

    def _wants_node(self, pod: Object) -> bool:
        spec = objects.spec(pod)
        return (
            spec.get("schedulerName") in self._names
            and not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and objects.is_active(pod)
        )
