"""The grant of a pod that is being bound: hold shares and create it, adopt an earlier one, or withdraw it."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.placement_lease import PlacementLease
from lamina.controller.context import Context
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.core.grants import ContainerGrant, grant_name
from lamina.core.requests import PodRequest
from lamina.errors import NotYet, Outside
from lamina.ledger.grant_objects import grant_object, grant_record
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pods import ParsedPod
from lamina.placement import Misfit
from lamina.ports.kube import GRANTS, AlreadyExists, Conflict, NotFound, Unreachable

_MAX_REMEMBERED = 20_000


class GrantOrigins:
    """Which grants this replica wrote itself, and since when it knows the grants of other replicas.

    Another replica's grant for a pod that is still pending may be the one with which that replica is binding the pod at
    this moment. If this replica adopted it, the other one could still withdraw it, and the pod would run on a share
    that is then given to another pod. So such a grant is left alone for `longest_attempt_s`, as long as an attempt to
    bind may last. Times are of a monotonic clock.
    """

    def __init__(self, longest_attempt_s: float) -> None:
        self._longest_attempt_s = longest_attempt_s
        self._known_since: OrderedDict[str, float] = OrderedDict()

    def record_own(self, grant_uid: str) -> None:
        """This replica wrote the grant."""
        self._remember(grant_uid, float("-inf"))

    def may_adopt(self, grant_uid: str, now: float) -> bool:
        """Whether no other replica can be binding a pod with the grant.

        The grant of another replica is known from the first call about it.
        """
        if grant_uid not in self._known_since:
            self._remember(grant_uid, now)
        return now - self._known_since[grant_uid] >= self._longest_attempt_s

    def _remember(self, grant_uid: str, since: float) -> None:
        self._known_since[grant_uid] = since
        if len(self._known_since) > _MAX_REMEMBERED:
            self._known_since.popitem(last=False)


_TRIES = 3


class PodGrants:
    """Writes grants one pod at a time. `check_leading` raises where this replica may not write.

    No attempt to bind a pod lasts longer than `longest_attempt_s`.
    """

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        assumed: AssumedPods,
        placement_lease: PlacementLease,
        *,
        check_leading: Callable[[], None],
        longest_attempt_s: float,
    ) -> None:
        self._context = context
        self._kube = context.kube
        self._ledger = context.ledger
        self._scheduler = scheduler
        self._assumed = assumed
        self._placement_lease = placement_lease
        self._check_leading = check_leading
        self._origins = GrantOrigins(longest_attempt_s)

    async def obtain(self, args: BindArgs, pod: ParsedPod, request: PodRequest) -> GrantRecord:
        """The pod's grant on the node: one that an earlier attempt left there, or a new one.

        Where the answer to creating it is lost, the hold stays until it expires, and covers a grant that exists.
        """
        for _ in range(_TRIES):
            record = await self._adopt(args)
            if record is not None:
                return record
            self._check_leading()
            containers = self._choose(args, pod, request)
            name = f"{args.podNamespace}/{grant_name(args.podName, args.podUID)}"
            self._placement_lease.begin_write(GRANTS, name)
            try:
                created = await self._kube.create(GRANTS, grant_object(pod.obj, args.node, request, containers))
            except AlreadyExists:
                self._ledger.release(args.podUID, Why.GRANT)
                await self._read_conflicting(args)
                continue
            except Unreachable:
                raise
            except Outside:
                self._ledger.release(args.podUID, Why.GRANT)
                raise
            self._context.note(GRANTS, created)
            record = grant_record(created)
            self._placement_lease.end_write(GRANTS, name, record.uid)
            self._origins.record_own(record.uid)
            self._ledger.observe_grant(record)
            return record
        raise NotYet(f"an earlier grant of {args.pod} is still being deleted")

    async def _adopt(self, args: BindArgs) -> GrantRecord | None:
        """A grant of an earlier attempt, if it is for this node, still exists and still fits; others are withdrawn.

        Raises NotYet for a grant with which another replica may be binding the pod at this moment, see `GrantOrigins`.
        """
        for record in self._ledger.grants_of(args.podUID):
            if not self._origins.may_adopt(record.uid, self._context.now()):
                raise NotYet(f"another attempt to bind {args.pod} may still be in progress")
            if record.grant.node == args.node and await self._exists(record):
                with contextlib.suppress(DoesNotFit):
                    self._hold(args, record.grant.containers)
                    return record
            await self.withdraw(record)
        return None

    async def _exists(self, record: GrantRecord) -> bool:
        """Whether the API server has and keeps the grant. Without it the pod would wait on its node forever."""
        try:
            obj = await self._kube.get(GRANTS, record.name, namespace=record.namespace)
        except NotFound:
            return False
        metadata = obj["metadata"]
        return bool(metadata["uid"] == record.uid and not metadata.get("deletionTimestamp"))

    async def _read_conflicting(self, args: BindArgs) -> None:
        """Read the existing grant that prevents creating a new one. The watch has not reported it yet."""
        name = grant_name(args.podName, args.podUID)
        with contextlib.suppress(NotFound):
            obj = await self._kube.get(GRANTS, name, namespace=args.podNamespace)
            self._context.note(GRANTS, obj)
            record = grant_record(obj)
            if record.grant.pod_uid != args.podUID:
                raise Conflict(f"grant {args.podNamespace}/{name} belongs to another pod")
            self._ledger.observe_grant(record)

    def _choose(self, args: BindArgs, pod: ParsedPod, request: PodRequest) -> tuple[ContainerGrant, ...]:
        """Choose shares and hold them. Nothing is awaited in between, so what was free is still free."""
        if refusal := self._scheduler.rules.refused_everywhere(pod) or request.only_native_reason:
            raise DoesNotFit(refusal)
        held = self._assumed.placement(args.podUID, args.node, request)
        placement = held or self._scheduler.place(pod, request, args.node)
        if placement is None:
            raise DoesNotFit(f"node {args.node} offers no GPUs")
        if isinstance(placement, Misfit):
            raise DoesNotFit(f"node {args.node}: {placement.reason}")
        self._scheduler.check_quotas(pod, placement.containers)
        self._hold(args, placement.containers)
        return placement.containers

    def _hold(self, args: BindArgs, containers: tuple[ContainerGrant, ...]) -> None:
        owner, now = (args.podUID, args.podNamespace, args.podName), self._context.now()
        self._ledger.hold(Hold.of_shares(*owner, args.node, containers, now))

    async def adopt_concurrent(self, args: BindArgs, record: GrantRecord) -> None:
        """Another replica may have withdrawn the grant and bound the pod with one of its own, which counts then."""
        if not await self._exists(record):
            self._ledger.miss_grants([record], self._context.now())
            await self._read_conflicting(args)

    async def revoke(self, args: BindArgs, record: GrantRecord) -> None:
        """Withdraw the grant and release the hold."""
        await self.withdraw(record)
        self._ledger.release(args.podUID, Why.GRANT)

    async def withdraw(self, record: GrantRecord) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self._kube.delete(GRANTS, record.name, namespace=record.namespace, uid=record.uid)
        self._ledger.remove_grant(record.uid, record.grant.pod_uid, self._context.now())
