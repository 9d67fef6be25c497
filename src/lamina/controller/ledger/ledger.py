"""Which pod holds what of every GPU: the one place that decides whether something still fits.

Three sources feed it: inventories (which GPUs exist), grants (what pods were given) and pods (whether they still run).
A reservation stands for a grant that is being created. A pod holds what its grant says from the moment of its
reservation until the pod has finished or is gone, even if the grant disappears: a running container keeps its memory
when a person deletes the record. A pod whose processes outlive it holds the same until they have ended. A grant without
its pod counts until it is certain that the pod is gone.

All times are seconds of a monotonic clock and are passed in. Nothing here awaits, so for every other task checking and
reserving are one step.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import structs

from lamina.controller.ledger.claims import Claim, GrantRecord, Hold, Reservation
from lamina.controller.ledger.grantless_pods import RunningRequest, largest_holdings
from lamina.controller.ledger.holdings import HeldByNode, Holdings
from lamina.controller.ledger.pod_reports import PodReport, PodReports, without_pods
from lamina.controller.ledger.pod_stages import PodState, Stage
from lamina.controller.ledger.survivors import REMEMBERED_S, Survivors
from lamina.controller.ledger.used_claims import ClaimName, UsedClaims
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory
from lamina.core.grants import ContainerGrant
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.survivors import Survivor
from lamina.errors import LaminaError
from lamina.placement.explanation.sentences import sentence_of_shares
from lamina.placement.rules.refusal import refusal_of_shares
from lamina.placement.state.nodes import GpuState

RESERVATION_S = 60.0
"""How long a reservation waits for its grant. An attempt to bind is given up well before."""
UNCONFIRMED_S = 30.0
"""How long a grant may contradict what is known of its pod before the API server is asked."""


UNKNOWN = "?"
"""The namespace of pods of which only an agent says that they were there."""


class DoesNotFit(LaminaError):
    """The shares do not fit the node as it is now; the message says which GPU lacks what."""


class UnconfirmedClaim(NamedTuple):
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
    """Takes observations and reservations, see the module; `holdings` has the sums that follow from them.

    `changed` is called with each node whose free capacity may have changed.
    """

    def __init__(self, changed: Callable[[str], None] = lambda node: None) -> None:
        self._changed = changed
        self.holdings = Holdings(changed)
        self._published: dict[str, PublishedInventory] = {}
        self._inventories: dict[str, Inventory] = {}
        """The same without what agents say of single pods, which `report` and `survivors` check."""
        self._reports = PodReports()
        self._pods: dict[str, PodState] = {}
        self._claims: dict[str, Claim] = {}
        self._unsettled: dict[str, Claim] = {}
        """The few claims that the passage of time may change: with a reservation, or in contradiction to their pod."""
        self._deleted_grants: dict[str, float] = {}
        self._deleted_pods: dict[str, float] = {}
        self._unobserved_deletions: dict[str, float] = {}
        """Pods of which a grant was deleted that was never observed, by UID."""
        self._running: dict[str, dict[str, RunningRequest]] = {}
        """By node and UID of the pod."""
        self._survivors = Survivors()
        self._used_claims = UsedClaims()
        self.unwatched_ends = 0
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
                self.unwatched_ends += len(
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
        claim = self._claim(uid, record.namespace, record.grant.pod)
        known = claim.grants.get(record.uid)
        if known == record and not claim.uncertain:
            return
        if known is None or known.grant.revision <= record.grant.revision:
            claim.grants[record.uid] = record
        claim.uncertain = False
        self._drop_superseded_grants(claim)
        self._update(uid, claim)

    def remove_grant(self, record_uid: str, pod_uid: str, now: float) -> None:
        """The grant is deleted. A bound pod continues to hold it until it ends, or has another grant on its node."""
        self._deleted_grants[record_uid] = now
        claim = self._claims.get(pod_uid)
        record = claim.grants.get(record_uid) if claim else None
        if record is None:
            self._unobserved_deletions[pod_uid] = now
        if claim is None:
            return
        pod = self.pod(pod_uid)
        if record is not None and not (pod.stage is Stage.BOUND and pod.node == record.grant.node):
            del claim.grants[record_uid]
        # Of several deleted grants, the pod may run with one that was never observed.
        if claim.grants and pod_uid in self._unobserved_deletions:
            claim.uncertain = claim.uncertain or claim.grants.keys() <= self._deleted_grants.keys()
        self._drop_superseded_grants(claim)
        self._update(pod_uid, claim)

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
        if state.ended and not before.ended and (ending := self._claims.get(uid)) is not None:
            self._survivors.end(uid, ending.namespace, self.holdings.of(uid), now, stopped=stopped)
        self._pods[uid] = state
        if state.stage is Stage.GONE:
            self._deleted_pods[uid] = now
        if running is not None:
            self._running.setdefault(state.node, {})[uid] = running
            self._claim(uid, running.namespace, running.pod)
        elif on_node.pop(uid, None) is not None and not on_node:
            del self._running[state.node]
        claim = self._claims.get(uid)
        if claim is not None:
            self._update(uid, claim)

    def remove_pod(self, uid: str, now: float, *, stopped: bool = True) -> None:
        """The pod is deleted; whether its containers had `stopped` before."""
        self.observe_pod(uid, PodState(Stage.GONE), now, stopped=stopped)

    # Reservations.

    def reserve(self, pod_uid: str, namespace: str, pod: str, reservation: Reservation) -> None:
        """Reserve shares for the pod, until the time is up or a grant on that node takes their place.

        Raises DoesNotFit, and then nothing has changed. A later reservation of a pod replaces the earlier one.
        """
        if self.pod(pod_uid).ended:
            raise DoesNotFit(f"pod {namespace}/{pod} has ended")
        self._check_fit(reservation.node, reservation.taken, without=pod_uid)
        claim = self._claim(pod_uid, namespace, pod)
        claim.reservation = reservation
        self._update(pod_uid, claim)

    def verify_holdings(self, pod_uid: str, node: str) -> None:
        """Raises DoesNotFit where the pod holds more of the node than others leave."""
        held = self.holdings.of(pod_uid).get(node)
        if held is None:
            raise DoesNotFit(f"the pod with the UID {pod_uid} no longer holds anything on node {node}")
        self._check_fit(node, held, without=pod_uid)

    def release(self, pod_uid: str) -> None:
        """Drop the pod's reservation, if there is one."""
        claim = self._claims.get(pod_uid)
        if claim is not None and claim.reservation is not None:
            claim.reservation = None
            self._update(pod_uid, claim)

    def expire(self, now: float) -> None:
        """Drop reservations whose time is up, and forget deleted pods and grants after REMEMBERED_S."""
        for uid in [uid for uid, claim in self._unsettled.items() if claim.expired(now)]:
            self.release(uid)
        for uid in self._survivors.expire(now):
            self.unwatched_ends += 1
            if (late := self._claims.get(uid)) is not None:
                self._update(uid, late)
        for uid in [uid for uid, since in self._deleted_pods.items() if since + REMEMBERED_S <= now]:
            del self._deleted_pods[uid], self._pods[uid]
        for uid in [uid for uid, since in self._unobserved_deletions.items() if since + REMEMBERED_S <= now]:
            del self._unobserved_deletions[uid]
        forgotten = [uid for uid, since in self._deleted_grants.items() if since + REMEMBERED_S <= now]
        if forgotten:
            held = {uid for claim in self._claims.values() for uid in claim.grants}
            for uid in forgotten:
                if uid not in held:
                    del self._deleted_grants[uid]

    def unconfirmed_claims(self, now: float) -> list[UnconfirmedClaim]:
        """Pods whose grants have contradicted what is known of the pod, at each call for UNCONFIRMED_S."""
        unconfirmed = []
        for uid, claim in self._unsettled.items():
            if not claim.grants or claim.reservation is not None:
                claim.unconfirmed_since = None
            elif claim.unconfirmed_since is None:
                claim.unconfirmed_since = now
            elif claim.unconfirmed_since + UNCONFIRMED_S <= now:
                unconfirmed.append(UnconfirmedClaim(uid, claim.namespace, claim.pod))
        return unconfirmed

    # Queries; those about sums are in `holdings`.

    def pod(self, uid: str) -> PodState:
        return self._pods.get(uid, PodState())

    def grants_of(self, pod_uid: str) -> list[GrantRecord]:
        claim = self._claims.get(pod_uid)
        return list(claim.grants.values()) if claim else []

    def has_started(self, pod_uid: str) -> bool:
        """Whether a container of the pod that can hold a GPU has started."""
        return pod_uid in self._running.get(self.pod(pod_uid).node, {})

    def reservation_of(self, pod_uid: str) -> Reservation | None:
        claim = self._claims.get(pod_uid)
        return claim.reservation if claim else None

    def holds(self) -> Iterator[Hold]:
        """The reservations of pods without a grant."""
        for uid, claim in self._unsettled.items():
            if claim.reservation is not None and not claim.grants:
                yield Hold(uid, claim.namespace, claim.pod, *claim.reservation)

    def records(self) -> Iterator[GrantRecord]:
        """All grants that hold something."""
        for claim in self._claims.values():
            yield from claim.grants.values()

    def records_on(self, node: str) -> list[GrantRecord]:
        """The grants that pods hold on the node."""
        records = (record for uid in self.holdings.pods_on(node) for record in self.grants_of(uid))
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
        taken = self.holdings.taken(node, without=without)
        gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
        for uuid, shares in wanted.items():
            if uuid not in gpus:
                raise DoesNotFit(f"node {node} has no GPU {uuid}")
            state = GpuState.of(gpus[uuid], taken.get(uuid, NOTHING))
            cause = refusal_of_shares(shares, state)
            if cause is not None:
                raise DoesNotFit(f"GPU {uuid} of node {node}: {sentence_of_shares(cause, shares, state)}")

    def _drop_superseded_grants(self, claim: Claim) -> None:
        """Forget deleted grants on a node where the pod has one that exists: the pod was bound with that one."""
        existing = {record.grant.node for uid, record in claim.grants.items() if uid not in self._deleted_grants}
        for uid, record in list(claim.grants.items()):
            if uid in self._deleted_grants and record.grant.node in existing:
                del claim.grants[uid]

    def _claim(self, uid: str, namespace: str, pod: str) -> Claim:
        """The claim of a pod of this name, which an agent may have named otherwise."""
        claim = self._claims.setdefault(uid, Claim(namespace, pod))
        claim.namespace, claim.pod = namespace, pod
        return claim

    def _update_claims(self, node: str) -> None:
        self.holdings.update_claims(node, self.claims_on(node))

    def _inventory_changed(self, published: PublishedInventory) -> None:
        node, survivors = published.inventory.node, published.inventory.survivors
        self._used_claims.keep(node, published.inventory.claims)
        self._update_claims(node)
        for each in self._survivors.publish(node, survivors, published.confirmed):
            self.unwatched_ends += each not in survivors
            uid = each.pod_uid
            claim = self._claims.get(uid) or Claim(self._survivors.namespace(uid), each.pod)
            self._claims[uid] = claim
            if not claim.grants and claim.reservation is None and not self._is_alive(uid):
                claim.namespace = self._survivors.namespace(uid)
            self._update(uid, claim)
        for uid, running in list(self._running.get(node, {}).items()):
            self._update(uid, self._claim(uid, running.namespace, running.pod))
        self._changed(node)

    def _is_alive(self, uid: str) -> bool:
        return self.pod(uid).stage in (Stage.PENDING, Stage.BOUND)

    def _survivors_hold(self, uid: str) -> HeldByNode:
        return {} if self._is_alive(uid) else self._survivors.held(uid)

    def _held(self, uid: str, claim: Claim) -> HeldByNode:
        """What the claim comes to, from all that is known of the pod."""
        pod = self.pod(uid)
        held = {} if pod.ended else self._held_while_bound(uid, pod, claim)
        return held or self._survivors_hold(uid)

    def _held_while_bound(self, uid: str, pod: PodState, claim: Claim) -> HeldByNode:
        running = self._running.get(pod.node, {}).get(uid)
        inventory = self._inventories.get(pod.node)
        certain = bool(claim.grants) and not claim.uncertain
        if running is None or inventory is None or certain or claim.reservation is not None:
            return claim.holdings()
        if inventory.offers_native_devices(running.request.native_devices):
            return {}  # kubelet gave it its devices, and no grant was needed
        return {pod.node: largest_holdings(running.request, inventory)}

    def _update(self, uid: str, claim: Claim) -> None:
        """Update the sums to what the claim comes to now, and drop a claim that holds nothing."""
        held = self._held(uid, claim)
        self.holdings.update(uid, claim.namespace, held)
        if not held:
            self._claims.pop(uid, None)
        if held and (claim.reservation is not None or (claim.grants and not claim.agrees_with(self.pod(uid)))):
            self._unsettled[uid] = claim
        else:
            self._unsettled.pop(uid, None)
            claim.unconfirmed_since = None


def reservation(node: str, containers: Iterable[ContainerGrant], now: float) -> Reservation:
    """The reservation of these containers' shares on `node`, made at `now`."""
    return Reservation(node, taken_by(containers), now + RESERVATION_S)
