"""What is taken of every GPU, and by whom: the one place that says whether something still fits.

Three sources feed it: inventories (what there is), grants (what pods were given) and pods (whether they still live).
A reservation stands for a grant that is being made. A pod holds what its grant says from the moment of its
reservation until the pod has finished or is gone, whether or not the grant is still there: a running container keeps
its memory when somebody deletes the record. Without its pod a grant counts until the pod's absence is certain.

All times are seconds of a monotonic clock and are passed in. Nothing here waits, so that to look and to reserve is
one step for every other task.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from lamina.control.claims import Claim, GrantRecord, Reservation
from lamina.control.stages import PodState, Stage
from lamina.control.unrecorded import Asked, most_held
from lamina.errors import BadInput, LaminaError
from lamina.model.gpus import Gpu, Inventory, Mode
from lamina.model.grants import ContainerGrant
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.model.mig import Placed
from lamina.model.mig_cards import MIG_CARDS
from lamina.placement.modes import allowed, kept

RESERVATION_S = 60.0
"""How long a reservation may wait for its grant; an attempt to bind is given up well before."""
DOUBT_S = 30.0
"""How long a grant may contradict what is known of its pod before the server is asked."""
REMEMBERED_S = 600.0
"""How long a deleted pod or grant is remembered against late news of it."""


class DoesNotFit(LaminaError):
    """The shares do not fit the node as it is now; the message says which GPU lacks what."""


class Doubt(NamedTuple):
    """A pod that holds something although what is known of it does not agree; the API server knows better."""

    pod_uid: str
    namespace: str
    pod: str


class Ledger:
    """See the module. `changed` is told each node whose free capacity may have changed."""

    def __init__(self, changed: Callable[[str], None] = lambda node: None) -> None:
        self._changed = changed
        self._inventories: dict[str, Inventory] = {}
        self._pods: dict[str, PodState] = {}
        self._claims: dict[str, Claim] = {}
        self._open: dict[str, Claim] = {}
        """Claims that time may change: with a reservation, or at odds with their pod. Most are not."""
        self._holders: dict[str, set[str]] = {}
        self._dead_grants: dict[str, float] = {}
        self._gone: dict[str, float] = {}
        self._totals: dict[str, dict[str, Taken]] = {}
        self._in_namespace: dict[str, Taken] = {}
        self._running: dict[str, dict[str, Asked]] = {}

    # What the cluster tells.

    def inventory_seen(self, inventory: Inventory) -> None:
        if self._inventories.get(inventory.node) != inventory:
            self._inventories[inventory.node] = inventory
            self._inventory_changed(inventory.node)

    def inventory_gone(self, node: str) -> None:
        if self._inventories.pop(node, None) is not None:
            self._inventory_changed(node)

    def grant_seen(self, record: GrantRecord) -> None:
        """A grant exists. Repetitions, and news of a grant or pod that is known to have ended, change nothing."""
        uid = record.grant.pod_uid
        if record.uid in self._dead_grants:
            return
        claim = self._claims.setdefault(uid, Claim(record.namespace, record.grant.pod))
        claim.grants[record.uid] = record
        self._drop_superseded(claim)
        self._recount(uid, claim)

    def grant_gone(self, record_uid: str, pod_uid: str, now: float) -> None:
        """The grant is deleted. A pod that is bound goes on holding it until the pod ends, or has another one there."""
        self._dead_grants[record_uid] = now
        claim = self._claims.get(pod_uid)
        record = claim.grants.get(record_uid) if claim else None
        if claim is None or record is None:
            return
        pod = self.pod(pod_uid)
        if not (pod.stage is Stage.BOUND and pod.node == record.grant.node):
            del claim.grants[record_uid]
        self._drop_superseded(claim)
        self._recount(pod_uid, claim)

    def pod_seen(self, uid: str, state: PodState, now: float, asked: Asked | None = None) -> None:
        """The pod exists, in this state or a later one that is already known.

        `asked` is what those of its containers asked that have run; it counts where no grant says what they hold.
        """
        before = self.pod(uid)
        state = before.risen(state)
        running = self._running.get(state.node, {})
        asked = None if state.over else asked or running.get(uid)
        if state == before and asked == running.get(uid):
            return
        self._pods[uid] = state
        if state.stage is Stage.GONE:
            self._gone[uid] = now
        if asked is not None:
            self._running.setdefault(state.node, {})[uid] = asked
            self._claims.setdefault(uid, Claim(asked.namespace, asked.pod))
        elif running.pop(uid, None) is not None and not running:
            del self._running[state.node]
        claim = self._claims.get(uid)
        if claim is not None:
            self._recount(uid, claim)

    def pod_gone(self, uid: str, now: float) -> None:
        self.pod_seen(uid, PodState(Stage.GONE), now)

    # Reserving.

    def reserve(self, pod_uid: str, namespace: str, pod: str, at: Reservation) -> None:
        """Take what `at` says for the pod, until its time is up or a grant on that node takes its place.

        Raises DoesNotFit, and then nothing has changed. A later reservation of the same pod replaces an earlier one.
        """
        if self.pod(pod_uid).over:
            raise DoesNotFit(f"pod {namespace}/{pod} has ended")
        self._check(at.node, at.taken, without=pod_uid)
        claim = self._claims.setdefault(pod_uid, Claim(namespace, pod))
        claim.reservation = at
        self._recount(pod_uid, claim)

    def recheck(self, pod_uid: str, node: str) -> None:
        """Raises DoesNotFit where what the pod holds of the node exceeds what others leave."""
        claim = self._claims.get(pod_uid)
        if claim is None or node not in claim.held:
            raise DoesNotFit(f"the pod with the UID {pod_uid} holds nothing of node {node} any more")
        self._check(node, claim.held[node], without=pod_uid)

    def release(self, pod_uid: str) -> None:
        """Drop the pod's reservation, if there is one."""
        claim = self._claims.get(pod_uid)
        if claim is not None and claim.reservation is not None:
            claim.reservation = None
            self._recount(pod_uid, claim)

    def tick(self, now: float) -> None:
        """Let reservations lapse and forget what has been remembered long enough."""
        for uid in [uid for uid, claim in self._open.items() if claim.lapsed(now)]:
            self.release(uid)
        for uid in [uid for uid, since in self._gone.items() if since + REMEMBERED_S <= now]:
            del self._gone[uid], self._pods[uid]
        for uid in [uid for uid, since in self._dead_grants.items() if since + REMEMBERED_S <= now]:
            del self._dead_grants[uid]

    def doubts(self, now: float) -> list[Doubt]:
        """Who holds a grant that does not agree with what is known of the pod, in every answer since DOUBT_S."""
        doubted = []
        for uid, claim in self._open.items():
            if not claim.grants or claim.reservation is not None:
                claim.doubted_since = None
            elif claim.doubted_since is None:
                claim.doubted_since = now
            elif claim.doubted_since + DOUBT_S <= now:
                doubted.append(Doubt(uid, claim.namespace, claim.pod))
        return doubted

    # What is asked.

    def pod(self, uid: str) -> PodState:
        return self._pods.get(uid, PodState())

    def grants_of(self, pod_uid: str) -> list[GrantRecord]:
        claim = self._claims.get(pod_uid)
        return list(claim.grants.values()) if claim else []

    def records(self) -> Iterator[GrantRecord]:
        """All grants that hold something."""
        for claim in self._claims.values():
            yield from claim.grants.values()

    def holds(self, pod_uid: str, node: str) -> bool:
        """Whether the pod holds anything on the node."""
        return pod_uid in self._holders.get(node, ())

    def nodes_of(self, pod_uid: str) -> Iterable[str]:
        """The nodes on which the pod holds something."""
        claim = self._claims.get(pod_uid)
        return claim.held.keys() if claim else ()

    def inventory(self, node: str) -> Inventory | None:
        return self._inventories.get(node)

    def nodes(self) -> Iterable[str]:
        """Nodes with an inventory."""
        return self._inventories.keys()

    def offered_plainly(self, resources: Collection[str]) -> bool:
        """Whether some node offers all of these without grants."""
        return any(each.plain and each.offers_plainly(resources) for each in self._inventories.values())

    def taken(self, node: str, *, without: str = "") -> Mapping[str, Taken]:
        """What is taken of the node's GPUs, by UUID; what the pod with the UID `without` holds is left out."""
        if self.holds(without, node):
            return self._sum(node, {without})
        totals = self._totals.get(node)
        if totals is None:
            totals = self._totals[node] = self._sum(node, frozenset())
        return totals

    def taken_in(self, namespace: str, *, without: str = "") -> Taken:
        """The amounts that the pods of one namespace hold, summed over all GPUs."""
        total = self._in_namespace.get(namespace, NOTHING)
        claim = self._claims.get(without)
        return total.less(_sum_of(claim.held)) if claim and claim.namespace == namespace else total

    def taken_without(self, node: str, pods: Set[str]) -> Mapping[str, Taken]:
        """What would be taken of the node's GPUs if the pods with these UIDs held nothing."""
        return self._sum(node, pods)

    def _sum(self, node: str, without: Set[str]) -> dict[str, Taken]:
        totals: dict[str, Taken] = {}
        for uid in self._holders.get(node, ()):
            if uid not in without:
                for gpu, taken in self._claims[uid].held[node].items():
                    totals[gpu] = totals.get(gpu, NOTHING).plus(taken)
        return totals

    def _check(self, node: str, wanted: Mapping[str, Taken], *, without: str) -> None:
        inventory = self._inventories.get(node)
        if inventory is None:
            raise DoesNotFit(f"node {node} has no inventory of GPUs")
        present = self.taken(node, without=without)
        gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
        for uuid, more in wanted.items():
            if uuid not in gpus:
                raise DoesNotFit(f"node {node} has no GPU {uuid}")
            lack = _lack(gpus[uuid], present.get(uuid, NOTHING), more)
            if lack:
                raise DoesNotFit(f"GPU {uuid} of node {node} {lack}")

    def _drop_superseded(self, claim: Claim) -> None:
        """Forget deleted grants of a node on which the pod has one that exists: it was bound by that one."""
        existing = {record.grant.node for uid, record in claim.grants.items() if uid not in self._dead_grants}
        for uid, record in list(claim.grants.items()):
            if uid in self._dead_grants and record.grant.node in existing:
                del claim.grants[uid]

    def _inventory_changed(self, node: str) -> None:
        for uid, asked in list(self._running.get(node, {}).items()):
            self._recount(uid, self._claims.setdefault(uid, Claim(asked.namespace, asked.pod)))
        self._changed(node)

    def _holdings(self, uid: str, claim: Claim) -> dict[str, dict[str, Taken]]:
        pod = self.pod(uid)
        if pod.over:
            return {}
        asked = self._running.get(pod.node, {}).get(uid)
        inventory = self._inventories.get(pod.node)
        if asked is not None and inventory is not None and inventory.offers_plainly(asked.request.plain):
            return claim.holdings()  # kubelet gave it its devices, and no grant was needed
        if asked is not None and inventory is not None and not claim.grants and claim.reservation is None:
            return {pod.node: most_held(asked.request, inventory)}
        return claim.holdings()

    def _recount(self, uid: str, claim: Claim) -> None:
        """Bring the sums up to what the claim holds now, and drop a claim that holds nothing."""
        before = claim.held
        claim.held = self._holdings(uid, claim)
        if claim.held != before:
            total = self._in_namespace.get(claim.namespace, NOTHING)
            self._in_namespace[claim.namespace] = total.less(_sum_of(before)).plus(_sum_of(claim.held))
        if not claim.held:
            self._claims.pop(uid, None)
        if claim.held and (claim.reservation is not None or (claim.grants and not claim.agrees_with(self.pod(uid)))):
            self._open[uid] = claim
        else:
            self._open.pop(uid, None)
            claim.doubted_since = None
        for node in before.keys() | claim.held.keys():
            holders = self._holders.setdefault(node, set())
            if node in claim.held:
                holders.add(uid)
            else:
                holders.discard(uid)
                if not holders:
                    del self._holders[node]
            if before.get(node) != claim.held.get(node):
                self._totals.pop(node, None)
                self._changed(node)


def reservation(node: str, containers: Iterable[ContainerGrant], now: float) -> Reservation:
    """The reservation of these containers' shares on `node`, made at `now`."""
    return Reservation(node, taken_by(containers), now + RESERVATION_S)


def _sum_of(held: Mapping[str, Mapping[str, Taken]]) -> Taken:
    """The amounts over all nodes and GPUs."""
    parts = [taken for gpus in held.values() for taken in gpus.values()]
    return Taken(sum(t.slots for t in parts), sum(t.memory_mib for t in parts), sum(t.cores for t in parts))


def _lack(gpu: Gpu, present: Taken, more: Taken) -> str:
    """Why `more` does not fit beside what is taken of the GPU, or nothing."""
    if not gpu.healthy:
        return f"is not healthy: {gpu.reason or 'without a reason'}"
    if gpu.cordoned:
        return "is cordoned"
    if not gpu.by_grant:
        return f"is given out as {gpu.plain}" if gpu.plain else f"is in the mode {gpu.mode}"
    if mode := _other_mode(gpu, present, more):
        return mode
    if present.whole or (more.whole and present != NOTHING):
        return "is not free to be used whole" if more.whole else "is used whole"
    slots = (more.slots, (more.most or gpu.slots) - present.slots, "slots")
    for wanted, free, unit in (
        (slots,)
        if more.instances
        else (
            slots,
            (more.memory_mib, gpu.capacity_mib - present.memory_mib, "MiB"),
            (more.cores, gpu.cores_capacity - present.cores, "% of compute"),
        )
    ):
        if wanted > free:
            return f"has {max(free, 0)} {unit} free; needed are {wanted}"
    return _overlap(gpu, present, more) if more.instances else ""


def _other_mode(gpu: Gpu, present: Taken, more: Taken) -> str:
    """The mode in which the GPU is, where `more` needs another one, or nothing."""
    needed = Mode.MIG if more.instances else Mode.QUOTA
    there = kept(gpu, present)
    if there is None:
        return "" if needed in allowed(gpu, cuttable=True) else f"may not be put in the mode {needed}"
    return "" if there is needed else f"is in the mode {there}"


def _overlap(gpu: Gpu, present: Taken, more: Taken) -> str:
    """Why the instances cannot be on the GPU beside those there, or nothing."""
    wanted = set(more.instances)
    stays = {Placed(each.profile, each.start) for each in gpu.instances if each.used or not each.made}
    used = {Placed(each.profile, each.start) for each in gpu.instances if each.used} - {*present.instances}
    if twice := wanted & {*present.instances, *used}:
        return f"has given out {', '.join(sorted(f'{each.profile} at {each.start}' for each in twice))} already"
    card = MIG_CARDS.get(gpu.mig_card)
    if card is None:
        return "is no card whose layouts are known"
    try:
        card.check((*sorted({*present.instances, *stays} - wanted), *sorted(wanted)))
    except BadInput as problem:
        return f"has no place for its instances: {problem}"
    return ""
