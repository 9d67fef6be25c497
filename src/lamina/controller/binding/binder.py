"""Binding a pod: choose its shares, hold them in the ledger, write the grant, take a turn, bind the pod to the node.

    read the pod, unless the watch has reported it ──(bound before)──> check that it has its grant there
         │                                         └─(a claim serves it)──> bind it without a grant
         v
    adopt an existing grant, or hold shares and create a grant ──(refused)──> release the hold
         │
         v
    take a turn ──(refused)──> withdraw the grant, release the hold
         │
         v
    bind the pod, with its compatibility annotations ──(refused)──> withdraw the grant, release the hold
         │                                           └─(the pod has changed)──> read it and try again
         v
    observe the pod as bound, release the hold, complete the pod's labels in the background

Where the API server did not answer, it is not known whether the step took effect: then the grant stays, and
`orphan_grants` settles it later. Attempts for one pod run one after another; attempts for different pods run
concurrently.
"""

import asyncio
import contextlib
from collections.abc import Callable

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.placement_lease import PlacementLease
from lamina.controller.binding.pod_grants import PodGrants
from lamina.controller.compatibility import BoundLabels, binding_metadata
from lamina.controller.context import Context
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.controller.tasks import BackgroundTasks, PodLocks
from lamina.core.requests import PodRequest
from lamina.dra.containers import claims_of
from lamina.errors import BadInput, LaminaError, NotYet, Outside
from lamina.ledger.holds import Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import PodState, Stage, pod_state
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PODS, RESOURCE_CLAIMS, BindingMetadata, Conflict, NotFound, Object, Unreachable

_TRIES = 3
MAX_ATTEMPT_S = 25.0
"""An attempt ends by then: before its hold expires, and before kube-scheduler stops waiting."""


class Binder:
    """Carries out binds. `leading` says whether this replica may write."""

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        assumed: AssumedPods,
        *,
        placement_lease: PlacementLease,
        locks: PodLocks,
        background: BackgroundTasks,
        leading: Callable[[], bool],
    ) -> None:
        self._context = context
        self._kube = context.kube
        self._ledger = context.ledger
        self._scheduler = scheduler
        self._placement_lease = placement_lease
        self._locks = locks
        self._background = background
        self._leading = leading
        self._grants = PodGrants(
            context,
            scheduler,
            assumed,
            placement_lease,
            check_leading=self._check_leading,
            longest_attempt_s=MAX_ATTEMPT_S,
        )
        self._labels = BoundLabels(context.kube)
        self._usage = context.claim_usage

    async def bind(self, args: BindArgs) -> str:
        """Give the pod its shares and its node. Returns why that failed as a sentence, or nothing."""
        try:
            async with asyncio.timeout(MAX_ATTEMPT_S), self._locks.of(args.podUID):
                await self._bind(args)
        except TimeoutError:
            return f"binding {args.pod} took longer than {MAX_ATTEMPT_S:g} s"
        except LaminaError as error:
            return str(error)
        return ""

    async def _bind(self, args: BindArgs) -> None:
        pod, state = self._reported_pod(args), PodState(Stage.PENDING)
        if pod is None:
            obj = await self._read_pod(args)
            state = self._observe(args, obj)
            if state.stage is Stage.PENDING and obj["metadata"].get("deletionTimestamp"):
                raise Conflict(f"{args.pod} is being deleted")
            pod = self._context.parse(obj)
        _check_placed(args, pod, state)
        if pod.served_by_claim:
            await self._bind_to_claim(args, pod, state)
            return
        request = _request(args, pod)
        if state.stage is not Stage.PENDING:
            self._check_bound_with_grant(args, state, request)
            return
        if self._scheduler.uses_native_devices(request, args.node):
            if reason := self._scheduler.rules.uncounted_devices(pod, request):
                raise DoesNotFit(reason)
            await self._bind_without_grant(args)
            return
        await self._read_claims(pod)
        if reason := self._context.cluster_state.claims.refusal(pod.obj, pod.ticket_holders):
            raise BadInput(reason)
        record = await self._grants.obtain(args, pod, request)
        await self._take_turn(args, pod, record)
        metadata = self._metadata(pod.obj, record)
        if not await self._bind_pod(args, pod, record, metadata):
            await self._bind_without_grant(args)
            return
        self._ledger.observe_pod(args.podUID, PodState(Stage.BOUND, args.node), self._context.now())
        self._ledger.release(args.podUID, Why.GRANT)
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
            obj = await self._kube.get(PODS, args.podName, namespace=args.podNamespace)
        except NotFound as error:
            self._ledger.remove_pod(args.podUID, self._context.now())
            raise NotFound(f"{args.pod} no longer exists") from error
        self._context.note(PODS, obj)
        return obj

    def _observe(self, args: BindArgs, obj: Object) -> PodState:
        """Report the pod's state to the ledger. Raises Conflict where this is another pod of the same name."""
        uid = obj["metadata"]["uid"]
        if uid != args.podUID:
            self._ledger.remove_pod(args.podUID, self._context.now())
            raise Conflict(f"{args.pod} was replaced by another pod of the same name")
        state = pod_state(obj)
        self._ledger.observe_pod(uid, state, self._context.now())
        return state

    async def _read_claims(self, pod: ParsedPod) -> None:
        """What was allocated to the pod's own claims just now, so that its grant has other GPUs: kubelet prepares the
        claims first, and would wait for the pod itself."""
        claims = self._context.cluster_state.claims
        for name in claims_of(pod.obj) if claims.followed else ():
            with contextlib.suppress(NotFound):
                claim = await self._kube.get(RESOURCE_CLAIMS, name, namespace=pod.namespace)
                if self._context.note(RESOURCE_CLAIMS, claim):
                    claims.observe(claim)

    async def _bind_to_claim(self, args: BindArgs, pod: ParsedPod, state: PodState) -> None:
        """kube-scheduler has made and allocated the pod's claim, and frees it where it exceeds a quota here."""
        if state.stage is Stage.PENDING:
            await self._read_claims(pod)
            own = self._context.cluster_state.claims.of(pod.obj)
            if self._usage.has_quota(pod.namespace) and (reason := self._usage.excess(pod.namespace, own, ())):
                raise DoesNotFit(reason)
            await self._bind_without_grant(args)
        else:
            _check_bound_there(args, state)

    async def _bind_without_grant(self, args: BindArgs) -> None:
        await self._kube.bind(args.podName, namespace=args.podNamespace, uid=args.podUID, node=args.node)

    def _check_bound_with_grant(self, args: BindArgs, state: PodState, request: PodRequest) -> None:
        """Repeating a bind succeeds if the first one was complete. Raises Conflict where it was not."""
        _check_bound_there(args, state)
        if self._scheduler.uses_native_devices(request, args.node):
            return
        if not any(record.grant.node == args.node for record in self._ledger.grants_of(args.podUID)):
            raise Conflict(f"{args.pod} was bound to node {args.node} by another scheduler, without a grant")

    async def _take_turn(self, args: BindArgs, pod: ParsedPod, record: GrantRecord) -> None:
        """Take the grant's turn on the node, or withdraw the grant. Without an answer the grant stays unconfirmed."""
        try:
            self._check_leading()
            await self._placement_lease.take(
                args.node,
                lambda: self._scheduler.check_holdings(pod, args.node, record.grant.containers),
                namespace=args.podNamespace if self._scheduler.rules.room(pod) is not None else "",
            )
            self._check_leading()
        except Unreachable:
            raise
        except LaminaError:
            await self._grants.revoke(args, record)
            raise

    def _check_leading(self) -> None:
        if not self._leading():
            raise NotYet("this replica of the controller is not the leader")

    def _metadata(self, pod: Object, record: GrantRecord) -> BindingMetadata:
        """The compatibility annotations and labels of the pod's dialect."""
        inventory = self._ledger.inventory(record.grant.node)
        return binding_metadata(pod, record.grant, self._context.clock.wall(), inventory)

    async def _bind_pod(self, args: BindArgs, pod: ParsedPod, record: GrantRecord, metadata: BindingMetadata) -> bool:
        """Bind the pod as it was read, or withdraw the grant. Where it cannot be known whether it is bound, that stays.

        Returns False where the pod is still to be bound, without a grant: kube-scheduler has made a claim for it.
        """
        name, where = f"{args.podNamespace}/{args.podName}", {"namespace": args.podNamespace, "uid": args.podUID}
        for _ in range(_TRIES):
            self._placement_lease.begin_write(PODS, name)
            try:
                await self._kube.bind(args.podName, **where, node=args.node, metadata=metadata, version=pod.version)
                self._placement_lease.end_write(PODS, name, args.node)
                return True
            except Outside as error:
                changed = await self._changed_pod(args, pod, record, error)
            if changed is None or changed.served_by_claim:
                return changed is None
            pod = changed
        await self._grants.revoke(args, record)
        raise Conflict(f"{args.pod} was changed by others whenever it was to be bound")

    async def _changed_pod(
        self, args: BindArgs, pod: ParsedPod, record: GrantRecord, error: Outside
    ) -> ParsedPod | None:
        """The pod as it is after a bind failed, if it has changed, and None if it is bound. Raises the error otherwise.

        The grant is withdrawn unless the pod can be bound with it.
        """
        try:
            obj = await self._read_pod(args)
            state = self._observe(args, obj)
        except (NotFound, Conflict):
            await self._grants.withdraw(record)
            raise
        if state == PodState(Stage.BOUND, args.node):
            await self._grants.adopt_concurrent(args, record)
            return None
        if isinstance(error, Unreachable):
            raise error
        changed = self._context.parse(obj)
        pending = state.stage is Stage.PENDING and changed.version != pod.version
        if pending and changed.request == pod.request:
            return changed
        await self._grants.revoke(args, record)
        if pending and changed.served_by_claim:
            return changed
        raise error


def _check_bound_there(args: BindArgs, state: PodState) -> None:
    """Raises Conflict where the pod is bound to another node, or has ended."""
    if state.ended:
        raise Conflict(f"{args.pod} has ended")
    if state.node != args.node:
        raise Conflict(f"{args.pod} is already bound to node {state.node}")


def _check_placed(args: BindArgs, pod: ParsedPod, state: PodState) -> None:
    """Raises BadInput for a pod that Lamina does not place, and for one without GPUs too where another scheduler does:
    no scheduler has to ask for its bind."""
    if pod.foreign_scheduler:
        raise BadInput(
            f"{args.pod} {pod.names_other_scheduler}; if that one uses the extender of Lamina, add its name to "
            "schedulers.served in the configuration"
        )
    if state.stage is Stage.PENDING and pod.not_placed:
        raise BadInput(f"{args.pod} {pod.not_placed}")


def _request(args: BindArgs, pod: ParsedPod) -> PodRequest:
    """The request of a pod that Lamina places. Raises BadInput for any other."""
    if pod.problem:
        raise BadInput(pod.problem)
    if pod.request is None:
        raise BadInput(f"{args.pod} requests no GPU; bind it without the extender of Lamina")
    return pod.request
