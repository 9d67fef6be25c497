"""Binding a pod: choose its shares, reserve them in the ledger, write the grant, take a turn, bind the pod to the node.

    read the pod, unless the watch has reported it ──(bound before)──> check that it has its grant there
         │
         v
    adopt an existing grant, or reserve shares and create a grant ──(refused)──> release the reservation
         │
         v
    take a turn ──(refused)──> withdraw the grant, release the reservation
         │
         v
    bind the pod, with its compatibility annotations ──(refused)──> withdraw the grant, release the reservation
         │
         v
    observe the pod as bound, release the reservation, complete the pod's labels in the background

Where the API server did not answer, it is not known whether the step took effect: then the grant stays, and
`orphan_grants` settles it later. Attempts for one pod run one after another; attempts for different pods run
concurrently.
"""

import asyncio
import contextlib
from collections.abc import Callable

from msgspec import Struct

from lamina.controller.background import BackgroundTasks
from lamina.controller.binding.bound_labels import BoundLabels
from lamina.controller.binding.grant_origin import GrantOrigins
from lamina.controller.binding.pod_locks import PodLocks
from lamina.controller.binding.turns import Turns
from lamina.controller.compat.annotations import binding_metadata
from lamina.controller.context import Context
from lamina.controller.ledger.claims import GrantRecord
from lamina.controller.ledger.grant_objects import grant_object, grant_record
from lamina.controller.ledger.ledger import DoesNotFit, reservation
from lamina.controller.ledger.pod_stages import PodState, Stage, pod_state
from lamina.controller.pods import ParsedPod
from lamina.controller.quotas.resource_quotas import granted
from lamina.controller.scheduling.decisions import Decisions
from lamina.controller.scheduling.expected_binds import ExpectedBinds
from lamina.errors import BadInput, LaminaError, NotYet, Outside
from lamina.model.grants import ContainerGrant, grant_name
from lamina.model.ledger import taken_by
from lamina.model.object_names import is_object_name
from lamina.model.requests import PodRequest
from lamina.placement import Misfit
from lamina.ports.kube import GRANTS, PODS, AlreadyExists, BindingMetadata, Conflict, NotFound, Object, Unreachable

_TRIES = 3
LONGEST_ATTEMPT_S = 25.0
"""An attempt ends by then: before its reservation expires, and before kube-scheduler stops waiting."""


class BindArgs(Struct, frozen=True, kw_only=True, rename="lower"):
    """`ExtenderBindingArgs` of kube-scheduler."""

    podName: str
    podNamespace: str
    podUID: str
    node: str

    def check(self) -> None:
        """Raises BadInput for names that no object has."""
        for field in ("podName", "podNamespace", "node"):
            if not is_object_name(getattr(self, field)):
                raise BadInput(f"{field} must be the name of an object of Kubernetes, got {getattr(self, field)!r}")


class Binder:
    """Carries out binds. `leading` says whether this replica may write."""

    def __init__(
        self,
        context: Context,
        decisions: Decisions,
        expected: ExpectedBinds,
        *,
        turns: Turns,
        locks: PodLocks,
        background: BackgroundTasks,
        leading: Callable[[], bool],
    ) -> None:
        self._context = context
        self._kube = context.kube
        self._ledger = context.ledger
        self._decisions = decisions
        self._expected = expected
        self._turns = turns
        self._locks = locks
        self._background = background
        self._leading = leading
        self._origins = GrantOrigins(LONGEST_ATTEMPT_S)
        self._labels = BoundLabels(context.kube)

    async def bind(self, args: BindArgs) -> str:
        """Give the pod its shares and its node. Returns why that failed as a sentence, or nothing."""
        try:
            async with asyncio.timeout(LONGEST_ATTEMPT_S), self._locks.of(args.podUID):
                await self._bind(args)
        except TimeoutError:
            return f"binding {_pod_name(args)} took longer than {LONGEST_ATTEMPT_S:g} s"
        except LaminaError as error:
            return str(error)
        return ""

    async def _bind(self, args: BindArgs) -> None:
        pod, state = self._reported_pod(args), PodState(Stage.PENDING)
        if pod is None:
            obj = await self._read_pod(args)
            state = self._observe(args, obj)
            if state.stage is Stage.PENDING and obj["metadata"].get("deletionTimestamp"):
                raise Conflict(f"{_pod_name(args)} is being deleted")
            pod = self._context.parse(obj)
        request = _own_request(args, pod)
        if state.stage is not Stage.PENDING:
            self._check_bound_with_grant(args, state, request)
            return
        if self._decisions.uses_native_devices(request, args.node):
            if reason := self._decisions.uncounted_devices(pod, request):
                raise DoesNotFit(reason)
            await self._kube.bind(args.podName, namespace=args.podNamespace, uid=args.podUID, node=args.node)
            return
        record = await self._take_grant(args, pod, request)
        await self._take_turn(args, pod, record)
        metadata = self._metadata(pod.obj, record)
        await self._bind_pod(args, record, metadata)
        self._ledger.observe_pod(args.podUID, PodState(Stage.BOUND, args.node), self._context.now())
        self._ledger.release(args.podUID)
        if metadata.labels:
            self._background.start(self._labels.complete(args.podUID, record, metadata.labels))

    def _reported_pod(self, args: BindArgs) -> ParsedPod | None:
        """The pod as the watch reported it. The API server refuses to bind one that has a node or is gone meanwhile."""
        pod = self._context.pending.pod(args.podUID, self._context.configuration.value)
        pending = self._ledger.pod(args.podUID).stage is Stage.PENDING
        same = pod is not None and (pod.namespace, pod.name) == (args.podNamespace, args.podName)
        return pod if pending and same else None

    async def _read_pod(self, args: BindArgs) -> Object:
        try:
            return await self._kube.get(PODS, args.podName, namespace=args.podNamespace)
        except NotFound as error:
            self._ledger.remove_pod(args.podUID, self._context.now())
            raise NotFound(f"{_pod_name(args)} no longer exists") from error

    def _observe(self, args: BindArgs, obj: Object) -> PodState:
        """Report the pod's state to the ledger. Raises Conflict where this is another pod of the same name."""
        uid = obj["metadata"]["uid"]
        if uid != args.podUID:
            self._ledger.remove_pod(args.podUID, self._context.now())
            raise Conflict(f"{_pod_name(args)} was replaced by another pod of the same name")
        state = pod_state(obj)
        self._ledger.observe_pod(uid, state, self._context.now())
        return state

    def _check_bound_with_grant(self, args: BindArgs, state: PodState, request: PodRequest) -> None:
        """Repeating a bind succeeds if the first one was complete. Raises Conflict where it was not."""
        if state.ended:
            raise Conflict(f"{_pod_name(args)} has ended")
        if state.node != args.node:
            raise Conflict(f"{_pod_name(args)} is already bound to node {state.node}")
        if self._decisions.uses_native_devices(request, args.node):
            return
        if not any(record.grant.node == args.node for record in self._ledger.grants_of(args.podUID)):
            raise Conflict(f"{_pod_name(args)} was bound to node {args.node} by another scheduler, without a grant")

    async def _take_grant(self, args: BindArgs, pod: ParsedPod, request: PodRequest) -> GrantRecord:
        """The pod's grant on the node: one that an earlier attempt left there, or a new one.

        Where the answer to creating it is lost, the reservation stays until it expires, and covers a grant that exists.
        """
        for _ in range(_TRIES):
            record = await self._adopt_existing_grant(args)
            if record is not None:
                return record
            self._check_leading()
            containers = self._reserve(args, pod, request)
            name = f"{args.podNamespace}/{grant_name(args.podName, args.podUID)}"
            self._turns.begin_write(GRANTS, name)
            try:
                created = await self._kube.create(GRANTS, grant_object(pod.obj, args.node, request, containers))
            except AlreadyExists:
                self._ledger.release(args.podUID)
                await self._read_conflicting_grant(args)
                continue
            except Unreachable:
                raise
            except Outside:
                self._ledger.release(args.podUID)
                raise
            record = grant_record(created)
            self._turns.end_write(GRANTS, name, record.uid)
            self._origins.record_own(record.uid)
            self._ledger.observe_grant(record)
            return record
        raise NotYet(f"an earlier grant of {_pod_name(args)} is still being deleted")

    async def _adopt_existing_grant(self, args: BindArgs) -> GrantRecord | None:
        """A grant of an earlier attempt, if it is for this node, still exists and still fits; others are withdrawn.

        Raises NotYet for a grant with which another replica may be binding the pod at this moment, see `grant_origin`.
        """
        for record in self._ledger.grants_of(args.podUID):
            if not self._origins.may_adopt(record.uid, self._context.now()):
                raise NotYet(f"another attempt to bind {_pod_name(args)} may still be in progress")
            if record.grant.node == args.node and await self._grant_exists(record):
                with contextlib.suppress(DoesNotFit):
                    self._reserve_shares(args, record.grant.containers)
                    return record
            await self._withdraw(record)
        return None

    async def _grant_exists(self, record: GrantRecord) -> bool:
        """Whether the API server has and keeps the grant. Without it the pod would wait on its node forever."""
        try:
            obj = await self._kube.get(GRANTS, record.name, namespace=record.namespace)
        except NotFound:
            return False
        metadata = obj["metadata"]
        return bool(metadata["uid"] == record.uid and not metadata.get("deletionTimestamp"))

    async def _read_conflicting_grant(self, args: BindArgs) -> None:
        """Read the existing grant that prevents creating a new one. The watch has not reported it yet."""
        name = grant_name(args.podName, args.podUID)
        with contextlib.suppress(NotFound):
            record = grant_record(await self._kube.get(GRANTS, name, namespace=args.podNamespace))
            if record.grant.pod_uid != args.podUID:
                raise Conflict(f"grant {args.podNamespace}/{name} belongs to another pod")
            self._ledger.observe_grant(record)

    def _reserve(self, args: BindArgs, pod: ParsedPod, request: PodRequest) -> tuple[ContainerGrant, ...]:
        """Choose shares and reserve them. Nothing is awaited in between, so what was free is still free."""
        if refusal := self._decisions.refusal(pod, request) or request.only_native_reason:
            raise DoesNotFit(refusal)
        held = self._expected.placement(args.podUID, args.node, request)
        placement = held or self._decisions.place(pod, request, args.node)
        if placement is None:
            raise DoesNotFit(f"node {args.node} offers no GPUs")
        if isinstance(placement, Misfit):
            raise DoesNotFit(f"node {args.node}: {placement.reason}")
        amounts = granted(taken_by(placement.containers).values())
        if excess := self._decisions.quota_excess(pod, amounts):
            raise DoesNotFit(excess)
        self._reserve_shares(args, placement.containers)
        return placement.containers

    def _reserve_shares(self, args: BindArgs, containers: tuple[ContainerGrant, ...]) -> None:
        shares = reservation(args.node, containers, self._context.now())
        self._ledger.reserve(args.podUID, args.podNamespace, args.podName, shares)

    async def _take_turn(self, args: BindArgs, pod: ParsedPod, record: GrantRecord) -> None:
        """Take the grant's turn on the node, or withdraw the grant. Without an answer the grant stays unconfirmed."""
        try:
            self._check_leading()
            await self._turns.take(
                args.node,
                lambda: self._decisions.check_holdings(pod, args.node, record.grant.containers),
                namespace=args.podNamespace if self._decisions.has_quota(pod) else "",
            )
            self._check_leading()
        except Unreachable:
            raise
        except LaminaError:
            await self._withdraw(record)
            self._ledger.release(args.podUID)
            raise

    def _check_leading(self) -> None:
        if not self._leading():
            raise NotYet("this replica of the controller is not the leader")

    def _metadata(self, pod: Object, record: GrantRecord) -> BindingMetadata:
        """The compatibility annotations and labels of the pod's dialect."""
        inventory = self._ledger.inventory(record.grant.node)
        return binding_metadata(pod, record.grant, self._context.clock.wall(), inventory)

    async def _bind_pod(self, args: BindArgs, record: GrantRecord, metadata: BindingMetadata) -> None:
        """Bind the pod, or withdraw the grant. Where it cannot be known whether the pod is bound, the grant stays."""
        namespace, uid, name = args.podNamespace, args.podUID, f"{args.podNamespace}/{args.podName}"
        self._turns.begin_write(PODS, name)
        try:
            await self._kube.bind(args.podName, namespace=namespace, uid=uid, node=args.node, metadata=metadata)
            self._turns.end_write(PODS, name, args.node)
        except Outside as error:
            try:
                state = self._observe(args, await self._read_pod(args))
            except (NotFound, Conflict):
                await self._withdraw(record)
                raise
            if state == PodState(Stage.BOUND, args.node):
                await self._learn_other_grant(args, record)
                return
            if isinstance(error, Unreachable):
                raise
            await self._withdraw(record)
            self._ledger.release(args.podUID)
            raise

    async def _learn_other_grant(self, args: BindArgs, record: GrantRecord) -> None:
        """Another replica may have withdrawn the grant and bound the pod with one of its own, which counts then."""
        if not await self._grant_exists(record):
            self._ledger.miss_grants([record], self._context.now())
            await self._read_conflicting_grant(args)

    async def _withdraw(self, record: GrantRecord) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self._kube.delete(GRANTS, record.name, namespace=record.namespace, uid=record.uid)
        self._ledger.remove_grant(record.uid, record.grant.pod_uid, self._context.now())


def _own_request(args: BindArgs, pod: ParsedPod) -> PodRequest:
    """The request of a pod that Lamina places. Raises BadInput for any other: no scheduler has to ask for its bind."""
    if pod.foreign_scheduler:
        raise BadInput(
            f"{_pod_name(args)} belongs to the scheduler {pod.foreign_scheduler}; if that one uses the extender of "
            "Lamina, add its name to schedulers.served in the configuration"
        )
    if pod.problem:
        raise BadInput(pod.problem)
    if pod.request is None:
        raise BadInput(f"{_pod_name(args)} requests no GPU; bind it without the extender of Lamina")
    return pod.request


def _pod_name(args: BindArgs) -> str:
    return f"pod {args.podNamespace}/{args.podName}"
