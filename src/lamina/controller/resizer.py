"""Resizes running containers, as annotations of their pods ask.

    more than counts as taken:  hold it    ─> write larger shares ─> take a turn ─(refused)─> write the shares of before
                                                                          │
                                                                          v
                                                     write the new size, which the agent applies
                                                                          │
                                                                          v
    when the agent says that it has applied it:       write shares that are what the container may use

So what counts as taken is never less than what a container may use, whichever step is the last before a crash. Each
write replaces the version of the grant that was read, so of two replicas one fails. If programs hold more memory than
the smaller size, the size that the container has is written again and the request is refused, unless it may wait.

Pods whose size was changed longest ago come first, and a namespace has a bounded number of changes at a time. So pods
whose sizes change all the time delay each other, and hardly anybody else.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import structs

from lamina.controller.binding.placement_lease import PlacementLease
from lamina.controller.compatibility import share_annotations
from lamina.controller.context import Context
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.controller.tasks import PodLocks
from lamina.core.grants import ContainerSize, Grant
from lamina.core.sizes import RESIZE_STATUS, AppliedSize, grows, raised, size_of, usable
from lamina.errors import BadInput, LaminaError, NotYet, Outside
from lamina.ledger.grant_objects import grant_record, replaced_grant
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import PodState
from lamina.ledger.resize_answers import (
    DONE,
    ENDED,
    NOT_APPLIED,
    NOT_PLACED,
    REFUSED,
    WAITING,
    ResizeAnswer,
    read_answer,
    without_grant,
)
from lamina.ledger.resize_requests import ResizedPod, read_requests, wanted, with_sizes
from lamina.ports.kube import GRANTS, PODS, EventRecorder, NotFound, Object, Unreachable

log = logging.getLogger(__name__)

MAX_CHANGES = 2
"""Of one namespace in one call."""


class Resizer:
    """Of all pods; `pods` returns those that ask or have asked for another size."""

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        events: EventRecorder,
        *,
        placement_lease: PlacementLease,
        locks: PodLocks,
        pods: Callable[[], Mapping[str, ResizedPod]],
        leading: Callable[[], bool],
    ) -> None:
        self._context = context
        self._ledger = context.ledger
        self._scheduler = scheduler
        self._events = events
        self._placement_lease = placement_lease
        self._locks = locks
        self._pods = pods
        self._leading = leading
        self._changed_at: dict[str, float] = {}
        """When sizes were changed last, by the UID of the pod."""
        self._changes = Counter[str]()
        """In this call, by namespace."""

    async def reconcile(self) -> None:
        """Go on with every pod. What fails, and what other pods of the namespace delay, is tried at the next call."""
        pods = self._pods()
        self._changes.clear()
        self._changed_at = {uid: at for uid, at in self._changed_at.items() if uid in pods}
        for uid, pod in sorted(pods.items(), key=lambda each: self._changed_at.get(each[0], float("-inf"))):
            if not self._leading():
                return
            try:
                async with self._locks.of(uid):
                    await self._follow(uid, pod)
            except (Outside, NotYet) as error:
                log.info("Cannot resize pod %s/%s yet: %s", pod.namespace, pod.name, error)
            except Exception as error:
                self._context.set_aside.add("size of a pod", f"{pod.namespace}/{pod.name}", error)

    async def _follow(self, uid: str, pod: ResizedPod) -> None:
        known = self._ledger.pod(uid)
        record = next((each for each in self._ledger.grants_of(uid) if each.grant.node == known.node), None)
        if record is None or known.ended:
            await self._answer_without_grant(uid, pod, known)
            return
        try:
            state, why = await self._state(record, pod)
        except (DoesNotFit, BadInput) as error:
            state, why = REFUSED, str(error)
        if pod.request:
            await self._tell(uid, pod, ResizeAnswer(state, why).written(pod.request))

    async def _answer_without_grant(self, uid: str, pod: ResizedPod, known: PodState) -> None:
        """Say what becomes of the request of a pod that has ended or has no grant. A request is refused once."""
        before = read_answer(pod.status, pod.request)
        if not pod.request or (before and before.state != WAITING):
            return
        answer: ResizeAnswer | None = ResizeAnswer(REFUSED, ENDED)
        if not known.ended:
            unplaced = before == ResizeAnswer(WAITING, NOT_PLACED) and not known.node
            answer = None if unplaced else await self._of_pod(pod, known.node)
        if answer is not None:
            await self._tell(uid, pod, answer.written(pod.request))

    async def _of_pod(self, pod: ResizedPod, node: str) -> ResizeAnswer | None:
        """What the pod itself says; None where it is gone."""
        try:
            obj = await self._context.kube.get(PODS, pod.name, namespace=pod.namespace)
        except NotFound:
            return None
        return without_grant(self._context.parse(obj), self._ledger.inventory(node))

    async def _state(self, record: GrantRecord, pod: ResizedPod) -> tuple[str, str]:
        """What became of the request, and why. Raises DoesNotFit and BadInput where it is refused."""
        before = pod.status.removeprefix(f"{REFUSED} {pod.request}: ") if pod.request else ""
        refused = before != pod.status and bool(pod.request)
        sizes = wanted(record.grant, read_requests(pod.request)) if pod.request and not refused else {}
        if sizes:
            if self._changes[record.namespace] >= MAX_CHANGES:
                raise NotYet("other pods of its namespace are resized first")
            self._changes[record.namespace] += 1
            self._changed_at[record.grant.pod_uid] = self._context.now()
            await self._change(record, sizes)
            return WAITING, NOT_APPLIED
        if not pod.waits and (held := self._held(record)):
            await self._restore(record, held)
            return REFUSED, next(iter(held.values())).waiting
        if why := self._unapplied(record):
            return (REFUSED, before) if refused else (WAITING, why)
        await self._release(record)
        return (REFUSED, before) if refused else (DONE, "")

    def _unapplied(self, record: GrantRecord) -> str:
        """Why containers do not have their sizes yet, as a sentence, or nothing."""
        applied = self._applied(record)
        for container in record.grant.containers:
            if container.size is None:
                continue
            found = applied.get(container.name)
            if (found.generation if found else 0) < container.size.generation:
                return (found.waiting if found else "") or NOT_APPLIED
        return ""

    def _applied(self, record: GrantRecord) -> Mapping[str, AppliedSize]:
        """The sizes that the containers of the pod have, as far as the agent has reported them."""
        return self._ledger.report(record.grant.pod_uid).sizes

    def _held(self, record: GrantRecord) -> Mapping[str, AppliedSize]:
        """The sizes of the containers whose programs hold more memory than the size in the grant."""
        applied = self._applied(record)
        return {
            each.name: found
            for each in record.grant.containers
            if each.size is not None
            and (found := applied.get(each.name)) is not None
            and found.held_generation == each.size.generation > found.generation
        }

    async def _restore(self, record: GrantRecord, held: Mapping[str, AppliedSize]) -> None:
        """Write the sizes that containers have, in the place of those that are too small. Their shares still count."""
        obj, grant = await self._read(record)
        sizes = {
            each.name: ContainerSize(
                generation=size_of(each).generation + 1,
                memory_mib=held[each.name].memory_mib,
                cores=held[each.name].cores,
            )
            for each in grant.containers
            if each.name in held
        }
        await self._write(obj, with_sizes(grant, sizes))

    async def _change(self, record: GrantRecord, sizes: Mapping[str, ContainerSize]) -> None:
        """Write the sizes, after room for them. Raises DoesNotFit."""
        self._check_limited_by_driver(record.grant, sizes)
        obj, grant = await self._read(record)
        containers = tuple(raised(each, sizes[each.name]) if each.name in sizes else each for each in grant.containers)
        room = structs.replace(grant, containers=containers)
        if any(grows(each, sizes[each.name]) for each in grant.containers if each.name in sizes):
            obj = await self._take_room(record, obj, grant, room)
            room = grant_record(obj).grant
        await self._write(obj, with_sizes(room, sizes))
        self._ledger.release(grant.pod_uid, Why.RESIZE)

    def _check_limited_by_driver(self, grant: Grant, sizes: Mapping[str, ContainerSize]) -> None:
        limited = self._ledger.report(grant.pod_uid).driver_limited
        for name in sizes:
            if name in limited:
                raise BadInput(f"container {name} is limited by the driver too, which cannot be resized")

    async def _take_room(self, record: GrantRecord, obj: Object, grant: Grant, room: Grant) -> Object:
        """Write larger shares, unless an attempt that was cut off has written them, and take their turn.

        Returns the object as it is then.
        """
        pod = self._context.parse(await self._context.kube.get(PODS, room.pod, namespace=record.namespace))
        self._scheduler.check_quotas(pod, room.containers)
        owner, now = (grant.pod_uid, record.namespace, grant.pod), self._context.now()
        self._ledger.hold(Hold.of_shares(*owner, grant.node, room.containers, now, Why.RESIZE))
        try:
            if room != grant:
                obj = await self._write(obj, room)
            await self._placement_lease.take(
                grant.node,
                lambda: self._scheduler.check_holdings(pod, grant.node, room.containers),
                namespace=record.namespace if self._scheduler.rules.room(pod) is not None else "",
            )
        except Unreachable:
            raise
        except LaminaError:
            if room != grant:
                await self._write(obj, grant)
            self._ledger.release(grant.pod_uid, Why.RESIZE)
            raise
        return obj

    async def _release(self, record: GrantRecord) -> None:
        """Count no more than containers may use, now that they can have no more."""
        if tuple(map(usable, record.grant.containers)) != record.grant.containers:
            obj, grant = await self._read(record)
            if not self._unapplied(record._replace(grant=grant)):
                await self._write(obj, structs.replace(grant, containers=tuple(map(usable, grant.containers))))

    async def _read(self, record: GrantRecord) -> tuple[Object, Grant]:
        """The grant as it is. Raises NotYet where it is another one than is known here."""
        obj = await self._context.kube.get(GRANTS, record.name, namespace=record.namespace)
        found = grant_record(obj)
        if found.uid == record.uid:
            self._ledger.observe_grant(found)
        if found != record:
            raise NotYet("its grant has changed")
        return obj, found.grant

    async def _write(self, obj: Object, grant: Grant) -> Object:
        if not self._leading():
            raise NotYet("this replica of the controller is not the leader")
        revision = grant_record(obj).grant.revision + 1
        changed = replaced_grant(obj, structs.replace(grant, revision=revision))
        written = await self._context.kube.replace(GRANTS, changed)
        self._ledger.observe_grant(grant_record(written))
        return written

    async def _tell(self, uid: str, pod: ResizedPod, status: str) -> None:
        """Write the status into the pod, for people, if it has changed."""
        if status == pod.status:
            return
        state = status.partition(" ")[0]
        annotations = {RESIZE_STATUS: status}
        if state in (DONE, REFUSED):
            annotations |= await self._share_annotations(uid, pod)
        change = {"metadata": {"uid": uid, "annotations": annotations}}
        try:
            obj = await self._context.kube.patch(PODS, pod.name, change, namespace=pod.namespace)
        except NotFound:
            return
        reason = {DONE: "Resized", REFUSED: "ResizeRefused"}.get(state)
        if reason:
            await self._events.record(PODS, obj, reason, status, warning=state == REFUSED)

    async def _share_annotations(self, uid: str, pod: ResizedPod) -> Mapping[str, str]:
        """What the annotations for other tools say of the shares now."""
        record = next(iter(self._ledger.grants_of(uid)), None)
        if record is None:
            return {}
        try:
            obj = await self._context.kube.get(PODS, pod.name, namespace=pod.namespace)
        except NotFound:
            return {}
        inventory = self._ledger.inventory(record.grant.node)
        found = share_annotations(obj, record.grant, self._context.now(), inventory)
        before = obj["metadata"].get("annotations") or {}
        return {key: value for key, value in found.items() if before.get(key) != value}
