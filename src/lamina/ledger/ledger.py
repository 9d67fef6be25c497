"""Which pod holds what of every GPU: the one place that decides whether something still fits.

Three sources feed it: inventories (which GPUs exist), grants (what pods were given) and pods (whether they still run).
A hold stands for a grant that is expected. A pod holds what its grant says from the moment of its hold until the pod
has finished or is gone, even if the grant disappears: a running container keeps its memory when a person deletes the
record. A pod whose processes outlive it holds the same until they have ended. A grant without its pod counts until it
is certain that the pod is gone.

All times are seconds of a monotonic clock and are passed in. Nothing here awaits, so for every other task checking and
holding are one step.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory
from lamina.core.ledger import NOTHING, Taken
from lamina.core.survivors import Survivor
from lamina.errors import LaminaError
from lamina.ledger.holds import Hold, Why
from lamina.ledger.lingering_pods import REMEMBERED_S, LingeringPods
from lamina.ledger.pod_holding import GrantRecord, PodHolding
from lamina.ledger.pod_reports import PodReport, PodReports, without_pods
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ledger.totals import HeldByNode, Totals
from lamina.ledger.ungranted_pods import RunningRequest, largest_holdings
from lamina.ledger.used_claims import ClaimName, UsedClaims
from lamina.placement.explanation.sentences import sentence_of_shares
from lamina.placement.rules.refusal import refusal_of_shares
from lamina.placement.state.nodes import GpuState

UNCONFIRMED_S = 30.0
"""How long a grant may contradict what is known of its pod before the API server is asked."""


UNKNOWN = "?"
"""The namespace of pods of which only an agent says that they were there."""


class DoesNotFit(LaminaError):
    """The shares do not fit the node as it is now; the message says which GPU lacks what."""


class ContradictedGrant(NamedTuple):
    """A pod whose grants contradict what is known of the pod. The API server knows which is right."""

    pod_uid: str
    namespace: str
    pod: str


class PublishedInventory(NamedTuple):
    """What an agent published, with what the controller and kube-scheduler say of it."""

    inventory: Inventory
    confirmed: tuple[str, ...] = ()
    allocated: frozenset[str] = frozenset()


class Ledger:
    """Takes observations and holds, see the module; `totals` has the sums that follow from them.

    `changed` is called with each node whose free capacity may have changed.
    """

    def __init__(self, changed: Callable[[str], None] = lambda node: None) -> None:
        self._changed = changed
        self.totals = Totals(changed)
        self._published: dict[str, PublishedInventory] = {}
        self._inventories: dict[str, Inventory] = {}
        """The same without what agents say of single pods, which `report` and `survivors` check."""
        self._reports = PodReports()
        self._pods: dict[str, PodState] = {}
        self._holdings: dict[str, PodHolding] = {}
        self._unsettled: dict[str, PodHolding] = {}
        """The few that the passage of time may change: with a hold, or in contradiction to their pod."""
        self._deleted_grants: dict[str, float] = {}
        self._deleted_pods: dict[str, float] = {}
        self._unobserved_deletions: dict[str, float] = {}
        """Pods of which a grant was deleted that was never observed, by UID."""
        self._running: dict[str, dict[str, RunningRequest]] = {}
        """By node and UID of the pod."""
        self._survivors = LingeringPods()
        self._used_claims = UsedClaims()
        self.silent_releases = 0
        """How often something that kube-scheduler does not watch stopped counting, or counted for less: pods that had
        counted beyond their end, and ResourceClaims that were prepared."""

    # Observations.

    def observe_inventory(
        self, inventory: Inventory, *, confirmed: tuple[str, ...] = (), allocated: frozenset[str] = frozenset()
    ) -> None:
        """The node has this inventory. `confirmed` are those of its survivors that had a grant there, and `allocated`
        the GPUs that kube-scheduler has allocated to claims."""
        node, published = inventory.node, PublishedInventory(inventory, confirmed, allocated)
        before = self._published.get(node)
        if before != published:
            self._published[node], self._inventories[node] = published, without_pods(inventory)
            self._reports.publish(inventory)
            if before is not None:
                self.silent_releases += len(
                    {each.uid for each in before.inventory.claims} - {each.uid for each in inventory.claims}
                )
            self._inventory_changed(published)

    def remove_inventory(self, node: str) -> None:
        if self._published.pop(node, None) is not None:
            del self._inventories[node]
            self._reports.remove(node)
            self._inventory_changed(PublishedInventory(Inventory(node=node)))

    def observe_grant(self, record: GrantRecord) -> None:
        """The grant exists. Repeated and late events, of a grant or pod that has ended or of an earlier
        revision, change nothing."""
        uid = record.grant.pod_uid
        if record.uid in self._deleted_grants:
            return
        holding = self._holding(uid, record.namespace, record.grant.pod)
        known = holding.grants.get(record.uid)
        if known == record and not holding.uncertain:
            return
        if known is None or known.grant.revision <= record.grant.revision:
            holding.grants[record.uid] = record
        holding.uncertain = False
        self._drop_superseded_grants(holding)
        self._update(uid, holding)

    def remove_grant(self, record_uid: str, pod_uid: str, now: float) -> None:
        """The grant is deleted. A bound pod continues to hold it until it ends, or has another grant on its node."""
        self._deleted_grants[record_uid] = now
        holding = self._holdings.get(pod_uid)
        record = holding.grants.get(record_uid) if holding else None
        if record is None:
            self._unobserved_deletions[pod_uid] = now
        if holding is None:
            return
        pod = self.pod(pod_uid)
        if record is not None and not (pod.stage is Stage.BOUND and pod.node == record.grant.node):
            del holding.grants[record_uid]
        # Of several deleted grants, the pod may run with one that was never observed.
        if holding.grants and pod_uid in self._unobserved_deletions:
            holding.uncertain = holding.uncertain or holding.grants.keys() <= self._deleted_grants.keys()
        self._drop_superseded_grants(holding)
        self._update(pod_uid, holding)

    def miss_grants(self, records: Iterable[GrantRecord], now: float) -> None:
        """These grants are not on the server, although no deletion was observed: others may have come and gone."""
        for record in records:
            if record.uid not in self._deleted_grants:
                self._unobserved_deletions[record.grant.pod_uid] = now
                self.remove_grant(record.uid, record.grant.pod_uid, now)

    def observe_pod(
        self,
        uid: str,
        state: PodState,
        now: float,
        running: RunningRequest | None = None,
        *,
        stopped: bool = True,
        claims: Collection[ClaimName] = (),
    ) -> None:
        """The pod exists, in this state or in a later one that is known already.

        `running` is what its started containers requested. It counts where no grant says what they hold. If the pod has
        ended and its containers have not `stopped`, it counts until its node's agent says what still runs. `claims` are
        the ResourceClaims that it uses.
        """
        before = self.pod(uid)
        state = before.merged_with(state)
        if state.node and self._used_claims.observe(uid, () if state.ended else claims, state.node):
            self._update_claims(state.node)
        on_node = self._running.get(state.node, {})
        running = None if state.ended else running or on_node.get(uid)
        if state == before and running == on_node.get(uid):
            return
        if state.ended and not before.ended and (ending := self._holdings.get(uid)) is not None:
            self._survivors.end(uid, ending.namespace, self.totals.of(uid), now, stopped=stopped)
        self._pods[uid] = state
        if state.stage is Stage.GONE:
            self._deleted_pods[uid] = now
        if running is not None:
            self._running.setdefault(state.node, {})[uid] = running
            self._holding(uid, running.namespace, running.pod)
        elif on_node.pop(uid, None) is not None and not on_node:
            del self._running[state.node]
        holding = self._holdings.get(uid)
        if holding is not None:
            self._update(uid, holding)

    def remove_pod(self, uid: str, now: float, *, stopped: bool = True) -> None:
        """The pod is deleted; whether its containers had `stopped` before."""
        self.observe_pod(uid, PodState(Stage.GONE), now, stopped=stopped)

    # Holds.

    def hold(self, hold: Hold) -> None:
        """Hold this room, until the time is up or a grant on that node takes its place.

        Raises DoesNotFit, and then nothing has changed. A later hold of a pod replaces the earlier one.
        """
        if self.pod(hold.uid).ended:
            raise DoesNotFit(f"pod {hold.namespace}/{hold.pod} has ended")
        self._check_fit(hold.node, hold.taken, without=hold.uid)
        holding = self._holding(hold.uid, hold.namespace, hold.pod)
        holding.hold = hold
        self._update(hold.uid, holding)

    def hold_all(self, holds: Sequence[Hold]) -> None:
        """Hold the room of several pods. Raises DoesNotFit, and then nothing is held for any of them."""
        try:
            for hold in holds:
                self.hold(hold)
        except DoesNotFit:
            for hold in holds:
                self._drop_hold(hold.uid)
            raise

    def verify_holdings(self, pod_uid: str, node: str) -> None:
        """Raises DoesNotFit where the pod holds more of the node than others leave."""
        held = self.totals.of(pod_uid).get(node)
        if held is None:
            raise DoesNotFit(f"the pod with the UID {pod_uid} no longer holds anything on node {node}")
        self._check_fit(node, held, without=pod_uid)

    def release(self, pod_uid: str, why: Why) -> bool:
        """Drop the pod's hold if that is why it is held. Returns whether it was."""
        hold = self.hold_of(pod_uid)
        if hold is None or hold.why is not why:
            return False
        self._drop_hold(pod_uid)
        return True

    def expire(self, now: float) -> None:
        """Drop holds whose time is up, and forget deleted pods and grants after REMEMBERED_S."""
        holds = [each.hold for each in self._unsettled.values() if each.hold is not None]
        for hold in holds:
            if hold.until <= now:
                self._drop_hold(hold.uid)
        for uid in self._survivors.expire(now):
            self.silent_releases += 1
            if (late := self._holdings.get(uid)) is not None:
                self._update(uid, late)
        for uid in [uid for uid, since in self._deleted_pods.items() if since + REMEMBERED_S <= now]:
            del self._deleted_pods[uid], self._pods[uid]
        for uid in [uid for uid, since in self._unobserved_deletions.items() if since + REMEMBERED_S <= now]:
            del self._unobserved_deletions[uid]
        forgotten = [uid for uid, since in self._deleted_grants.items() if since + REMEMBERED_S <= now]
        if forgotten:
            held = {uid for holding in self._holdings.values() for uid in holding.grants}
            for uid in forgotten:
                if uid not in held:
                    del self._deleted_grants[uid]

    def contradicted_grants(self, now: float) -> list[ContradictedGrant]:
        """Pods whose grants have contradicted what is known of the pod, at each call for UNCONFIRMED_S."""
        unconfirmed = []
        for uid, holding in self._unsettled.items():
            if not holding.grants or holding.hold is not None:
                holding.unconfirmed_since = None
            elif holding.unconfirmed_since is None:
                holding.unconfirmed_since = now
            elif holding.unconfirmed_since + UNCONFIRMED_S <= now:
                unconfirmed.append(ContradictedGrant(uid, holding.namespace, holding.pod))
        return unconfirmed

    # Queries; those about sums are in `totals`.

    def pod(self, uid: str) -> PodState:
        return self._pods.get(uid, PodState())

    def grants_of(self, pod_uid: str) -> list[GrantRecord]:
        holding = self._holdings.get(pod_uid)
        return list(holding.grants.values()) if holding else []

    def has_started(self, pod_uid: str) -> bool:
        """Whether a container of the pod that can hold a GPU has started."""
        return pod_uid in self._running.get(self.pod(pod_uid).node, {})

    def hold_of(self, pod_uid: str) -> Hold | None:
        holding = self._holdings.get(pod_uid)
        return holding.hold if holding else None

    def holds(self) -> Iterator[Hold]:
        """The holds of pods without a grant."""
        for holding in self._unsettled.values():
            if holding.hold is not None and not holding.grants:
                yield holding.hold

    def records(self) -> Iterator[GrantRecord]:
        """All grants that hold something."""
        for holding in self._holdings.values():
            yield from holding.grants.values()

    def records_on(self, node: str) -> list[GrantRecord]:
        """The grants that pods hold on the node."""
        records = (record for uid in self.totals.pods_on(node) for record in self.grants_of(uid))
        return [record for record in records if record.grant.node == node]

    def inventory(self, node: str) -> Inventory | None:
        """What the node has, without what its agent says of single pods."""
        return self._inventories.get(node)

    def report(self, uid: str) -> PodReport:
        """What the agent of its node says of a pod that has a grant there."""
        nodes = {record.grant.node for record in self.grants_of(uid)}
        bound = self.pod(uid).node
        node = bound if bound else next(iter(nodes)) if len(nodes) == 1 else ""
        return self._reports.of(uid, node) if node in nodes else PodReport()

    def reports(self) -> Iterator[tuple[str, PodReport]]:
        """What agents say of pods of their nodes, by UID of the pod."""
        for uid in self._reports.uids():
            yield uid, self.report(uid)

    def survivors(self, node: str) -> tuple[Survivor, ...]:
        """The pods that count on the node after their end, in the namespace UNKNOWN where that is not certain."""
        return tuple(
            structs.replace(each, namespace=self._survivors.namespace(each.pod_uid) or UNKNOWN)
            for each in self._survivors.named_on(node)
            if node in self._survivors_hold(each.pod_uid)
        )

    def confirmed_survivors(self, node: str) -> tuple[str, ...]:
        """Those of them that count in a namespace, as <namespace>/<UID>."""
        return self._survivors.confirmed(node)

    def claims_on(self, node: str) -> tuple[HeldClaim, ...]:
        """The ResourceClaims that the agent of the node has prepared for pods there."""
        published = self._published.get(node)
        return self._used_claims.used(node, published.inventory.claims if published else ())

    def allocated_on(self, node: str) -> frozenset[str]:
        """UUIDs of GPUs of the node that kube-scheduler has allocated to claims."""
        published = self._published.get(node)
        return published.allocated if published else frozenset()

    def nodes(self) -> Iterable[str]:
        """Nodes with an inventory."""
        return self._inventories.keys()

    def offers_native_devices(self, resources: Collection[str]) -> bool:
        """Whether some node offers all of these resources without grants."""
        return any(
            inventory.native_resources and inventory.offers_native_devices(resources)
            for inventory in self._inventories.values()
        )

    def _check_fit(self, node: str, wanted: Mapping[str, Taken], *, without: str) -> None:
        inventory = self._inventories.get(node)
        if inventory is None:
            raise DoesNotFit(f"node {node} has no inventory of GPUs")
        taken = self.totals.taken(node, without=without)
        gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
        for uuid, shares in wanted.items():
            if uuid not in gpus:
                raise DoesNotFit(f"node {node} has no GPU {uuid}")
            state = GpuState.of(gpus[uuid], taken.get(uuid, NOTHING))
            cause = refusal_of_shares(shares, state)
            if cause is not None:
                raise DoesNotFit(f"GPU {uuid} of node {node}: {sentence_of_shares(cause, shares, state)}")

    def _drop_hold(self, uid: str) -> None:
        holding = self._holdings.get(uid)
        if holding is not None and holding.hold is not None:
            holding.hold = None
            self._update(uid, holding)

    def _drop_superseded_grants(self, holding: PodHolding) -> None:
        """Forget deleted grants on a node where the pod has one that exists: the pod was bound with that one."""
        existing = {record.grant.node for uid, record in holding.grants.items() if uid not in self._deleted_grants}
        for uid, record in list(holding.grants.items()):
            if uid in self._deleted_grants and record.grant.node in existing:
                del holding.grants[uid]

    def _holding(self, uid: str, namespace: str, pod: str) -> PodHolding:
        """What a pod of this name holds. An agent may have given it another name."""
        holding = self._holdings.setdefault(uid, PodHolding(namespace, pod))
        holding.namespace, holding.pod = namespace, pod
        return holding

    def _update_claims(self, node: str) -> None:
        self.totals.update_claims(node, self.claims_on(node))

    def _inventory_changed(self, published: PublishedInventory) -> None:
        node, survivors = published.inventory.node, published.inventory.survivors
        self._used_claims.keep(node, published.inventory.claims)
        self._update_claims(node)
        for each in self._survivors.publish(node, survivors, published.confirmed):
            self.silent_releases += each not in survivors
            uid = each.pod_uid
            holding = self._holdings.get(uid) or PodHolding(self._survivors.namespace(uid), each.pod)
            self._holdings[uid] = holding
            if not holding.grants and holding.hold is None and not self._is_alive(uid):
                holding.namespace = self._survivors.namespace(uid)
            self._update(uid, holding)
        for uid, running in list(self._running.get(node, {}).items()):
            self._update(uid, self._holding(uid, running.namespace, running.pod))
        self._changed(node)

    def _is_alive(self, uid: str) -> bool:
        return self.pod(uid).stage in (Stage.PENDING, Stage.BOUND)

    def _survivors_hold(self, uid: str) -> HeldByNode:
        return {} if self._is_alive(uid) else self._survivors.held(uid)

    def _held(self, uid: str, holding: PodHolding) -> HeldByNode:
        """What this pod counts for now."""
        pod = self.pod(uid)
        held = {} if pod.ended else self._held_while_bound(uid, pod, holding)
        return held or self._survivors_hold(uid)

    def _held_while_bound(self, uid: str, pod: PodState, holding: PodHolding) -> HeldByNode:
        running = self._running.get(pod.node, {}).get(uid)
        inventory = self._inventories.get(pod.node)
        certain = bool(holding.grants) and not holding.uncertain
        if running is None or inventory is None or certain or holding.hold is not None:
            return holding.by_node()
        if inventory.offers_native_devices(running.request.native_devices):
            return {}  # kubelet gave it its devices, and no grant was needed
        return {pod.node: largest_holdings(running.request, inventory)}

    def _update(self, uid: str, holding: PodHolding) -> None:
        """Update the sums to what the pod counts for now, and forget one that holds nothing."""
        held = self._held(uid, holding)
        self.totals.update(uid, holding.namespace, held)
        if not held:
            self._holdings.pop(uid, None)
        if held and (holding.hold is not None or (holding.grants and not holding.agrees_with(self.pod(uid)))):
            self._unsettled[uid] = holding
        else:
            self._unsettled.pop(uid, None)
            holding.unconfirmed_since = None
