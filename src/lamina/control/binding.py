"""Bind: decide the shares, take them in the ledger, write the grant, take a turn, give the pod to the node.

What was taken is given back when a later step is refused. Where no answer came, nobody knows whether the pod is bound:
then the grant stays and `doubts` asks again. Attempts for one pod follow one another; different pods do not wait.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from msgspec import Struct

from lamina.control.authorship import Authorship
from lamina.control.background import Background
from lamina.control.claims import GrantRecord
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions
from lamina.control.grant_objects import grant_object, grant_record
from lamina.control.ledger import DoesNotFit, Ledger, reservation
from lamina.control.mirror import marks
from lamina.control.pod_locks import PodLocks
from lamina.control.quotas import granted
from lamina.control.stages import PodState, Stage, pod_state
from lamina.control.turns import Turns
from lamina.dialects import parse
from lamina.errors import LaminaError, NotYet, Outside
from lamina.model.grants import ContainerGrant, grant_name
from lamina.model.ledger import taken_by
from lamina.model.requests import PodRequest
from lamina.placement import Misfit
from lamina.ports.kube import GRANTS, PODS, AlreadyExists, Conflict, Kube, NotFound, Object, Unreachable

log = logging.getLogger(__name__)

_TRIES = 3
LONGEST_S = 25.0
"""An attempt ends by then: before its reservation lapses, and before kube-scheduler stops waiting."""


class BindArgs(Struct, frozen=True, kw_only=True, rename="lower"):
    """`ExtenderBindingArgs` of kube-scheduler."""

    podName: str
    podNamespace: str
    podUID: str
    node: str


class Binder:
    """Carries out binds against one API server. `now` is a monotonic clock, `wall` Unix time; `leading` says whether
    this replica may write."""

    def __init__(
        self,
        kube: Kube,
        ledger: Ledger,
        decisions: Decisions,
        configuration: Configuration,
        *,
        now: Callable[[], float],
        wall: Callable[[], float],
        background: Background,
        locks: PodLocks,
        turns: Turns,
        leading: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._ledger = ledger
        self._decisions = decisions
        self._configuration = configuration
        self._now = now
        self._wall = wall
        self._background = background
        self._locks = locks
        self._authorship = Authorship(LONGEST_S)
        self._turns = turns
        self._leading = leading

    async def bind(self, args: BindArgs) -> str:
        """Give the pod its shares and its node. Returns the sentence that says why not, or nothing."""
        try:
            async with asyncio.timeout(LONGEST_S), self._locks.of(args.podUID):
                await self._bind(args)
        except TimeoutError:
            return f"binding {_name(args)} took longer than {LONGEST_S:g} s"
        except LaminaError as error:
            return str(error)
        return ""

    async def _bind(self, args: BindArgs) -> None:
        pod = await self._pod(args)
        state = self._noted(args, pod)
        if state.stage is Stage.PENDING and pod["metadata"].get("deletionTimestamp"):
            raise Conflict(f"{_name(args)} is being deleted")
        request = parse(pod, self._configuration.value)
        if state.stage is not Stage.PENDING:
            self._check_bound_before(args, state, request)
            return
        if request is None or self._decisions.plainly(request, args.node):
            await self._kube.bind(args.podName, namespace=args.podNamespace, uid=args.podUID, node=args.node)
            return
        record = await self._grant(args, pod, request)
        await self._order(args, record)
        await self._give(args, record)
        self._ledger.pod_seen(args.podUID, PodState(Stage.BOUND, args.node), self._now())
        self._ledger.release(args.podUID)
        self._background.start(self._mark(pod, record))

    async def _pod(self, args: BindArgs) -> Object:
        try:
            return await self._kube.get(PODS, args.podName, namespace=args.podNamespace)
        except NotFound as error:
            self._ledger.pod_gone(args.podUID, self._now())
            raise NotFound(f"{_name(args)} is gone") from error

    def _noted(self, args: BindArgs, pod: Object) -> PodState:
        """Tell the ledger what the pod is now. Raises Conflict where it is another pod of that name."""
        uid = pod["metadata"]["uid"]
        if uid != args.podUID:
            self._ledger.pod_gone(args.podUID, self._now())
            raise Conflict(f"{_name(args)} was replaced by another pod of its name")
        state = pod_state(pod)
        self._ledger.pod_seen(uid, state, self._now())
        return state

    def _check_bound_before(self, args: BindArgs, state: PodState, request: PodRequest | None) -> None:
        """A repeated bind is fine where the first one did all of it. Raises Conflict where it did not."""
        if state.over:
            raise Conflict(f"{_name(args)} has ended")
        if state.node != args.node:
            raise Conflict(f"{_name(args)} is bound to node {state.node} already")
        ungranted = request is None or self._decisions.plainly(request, args.node)
        if not ungranted and not any(r.grant.node == args.node for r in self._ledger.grants_of(args.podUID)):
            raise Conflict(f"{_name(args)} was bound to node {args.node} by somebody who gave it no grant")

    async def _grant(self, args: BindArgs, pod: Object, request: PodRequest) -> GrantRecord:
        """The pod's grant on the node: one that an earlier attempt left there, else a new one.

        Where the answer to writing it is lost, the reservation stays until it lapses, and covers a grant that exists.
        """
        for _ in range(_TRIES):
            record = await self._left_over(args)
            if record is not None:
                return record
            self._check_leading()
            containers = self._reserve(args, pod, request)
            try:
                made = await self._kube.create(GRANTS, grant_object(pod, args.node, request, containers))
            except AlreadyExists:
                self._ledger.release(args.podUID)
                await self._learn(args)
                continue
            except Unreachable:
                raise
            except Outside:
                self._ledger.release(args.podUID)
                raise
            record = grant_record(made)
            self._authorship.wrote(record.uid)
            self._ledger.grant_seen(record)
            return record
        raise NotYet(f"an earlier grant of {_name(args)} is still being deleted")

    async def _left_over(self, args: BindArgs) -> GrantRecord | None:
        """A grant of an earlier attempt, if it is for this node, still there and still fits; others are withdrawn.

        Raises NotYet for one that another replica may be binding with at this moment: who took it over could have it
        withdrawn under his hands.
        """
        for record in self._ledger.grants_of(args.podUID):
            if not self._authorship.settled(record.uid, self._now()):
                raise NotYet(f"another attempt to bind {_name(args)} may still be under way")
            if record.grant.node == args.node and await self._exists(record):
                with contextlib.suppress(DoesNotFit):
                    self._take(args, record.grant.containers)
                    return record
            await self._withdraw(record)
        return None

    async def _exists(self, record: GrantRecord) -> bool:
        """Whether the server still has the grant, and keeps it: without it the pod would wait on its node for ever."""
        try:
            present = await self._kube.get(GRANTS, record.name, namespace=record.namespace)
        except NotFound:
            return False
        meta = present["metadata"]
        return bool(meta["uid"] == record.uid and not meta.get("deletionTimestamp"))

    async def _learn(self, args: BindArgs) -> None:
        """Read the grant that stands in the way of a new one, which the watch has not told yet."""
        name = grant_name(args.podName, args.podUID)
        with contextlib.suppress(NotFound):
            record = grant_record(await self._kube.get(GRANTS, name, namespace=args.podNamespace))
            if record.grant.pod_uid != args.podUID:
                raise Conflict(f"grant {args.podNamespace}/{name} belongs to another pod")
            self._ledger.grant_seen(record)

    def _reserve(self, args: BindArgs, pod: Object, request: PodRequest) -> tuple[ContainerGrant, ...]:
        """Decide and take, without a pause between: what was free when it was looked at is ours."""
        if refusal := self._decisions.refusal(pod, request) or request.only_plain:
            raise DoesNotFit(refusal)
        placement = self._decisions.place(pod, request, args.node)
        if placement is None:
            raise DoesNotFit(f"node {args.node} offers no GPUs")
        if isinstance(placement, Misfit):
            raise DoesNotFit(f"node {args.node}: {placement.reason}")
        beyond = self._decisions.over_quota(pod, granted(taken_by(placement.containers).values()))
        if beyond:
            raise DoesNotFit(beyond)
        self._take(args, placement.containers)
        return placement.containers

    def _take(self, args: BindArgs, containers: tuple[ContainerGrant, ...]) -> None:
        place = reservation(args.node, containers, self._now())
        self._ledger.reserve(args.podUID, args.podNamespace, args.podName, place)

    async def _order(self, args: BindArgs, record: GrantRecord) -> None:
        """Give the grant its turn on the node, or take it back. Where no answer came, the grant stays in doubt."""
        try:
            self._check_leading()
            await self._turns.take(args.node, lambda: self._ledger.recheck(args.podUID, args.node))
            self._check_leading()
        except Unreachable:
            raise
        except LaminaError:
            await self._withdraw(record)
            self._ledger.release(args.podUID)
            raise

    def _check_leading(self) -> None:
        if not self._leading():
            raise NotYet("this replica of the control part does not lead now")

    async def _give(self, args: BindArgs, record: GrantRecord) -> None:
        """Bind the pod, or take the grant back. Where nobody can tell what happened, the grant stays."""
        try:
            await self._kube.bind(args.podName, namespace=args.podNamespace, uid=args.podUID, node=args.node)
        except Outside as error:
            state = self._noted(args, await self._pod(args))
            if state == PodState(Stage.BOUND, args.node):
                return
            if isinstance(error, Unreachable):
                raise
            await self._withdraw(record)
            self._ledger.release(args.podUID)
            raise

    async def _withdraw(self, record: GrantRecord) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self._kube.delete(GRANTS, record.name, namespace=record.namespace, uid=record.uid)
        self._ledger.grant_gone(record.uid, record.grant.pod_uid, self._now())

    async def _mark(self, pod: Object, record: GrantRecord) -> None:
        patch = marks(pod, record.grant, self._wall(), self._ledger.inventory(record.grant.node))
        if patch is None:
            return
        try:
            await self._kube.patch(PODS, record.grant.pod, patch, namespace=record.namespace)
        except Outside as error:
            log.warning("Pod %s/%s is bound but not marked: %s", record.namespace, record.grant.pod, error)


def _name(args: BindArgs) -> str:
    return f"pod {args.podNamespace}/{args.podName}"
