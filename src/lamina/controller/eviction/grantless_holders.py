"""Pods that keep tickets of a node from others: named after a minute, evicted after the time in the configuration.

Every replica remembers since when it has observed such a pod, so that another leader goes on where this one ended. Only
the leader acts. A container that has started had a grant: its pod stays, and counts by its request. Evicted is with a
short grace period, also where the pod is being deleted with a long one: no container of it has a GPU.
"""

from collections.abc import Iterator

from lamina.controller.context import Context
from lamina.controller.eviction.candidates import FoundSince
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.observation.watches import Watches
from lamina.core.evictions import NAMED_AFTER_S
from lamina.ledger.ticket_holders import TicketHolder, describe_tickets, without_grant
from lamina.ports.kube import PODS, Object

EVERY_S = 5.0
MAX_GRACE_S = 30
"""The longest time that the containers of an evicted pod have to end."""


class GrantlessHolders:
    """Those of one replica."""

    def __init__(self, context: Context, evictor: Evictor, watches: Watches) -> None:
        self._context = context
        self._evictor = evictor
        self._watches = watches
        self._found = FoundSince()
        self._named: set[str] = set()

    @property
    def named(self) -> dict[str, int]:
        """How many pods have been without a grant for a minute, by namespace."""
        now, counts = self._context.now(), dict[str, int]()
        for holder, _ in self._grantless():
            if self._found.seconds(holder.uid, now) >= NAMED_AFTER_S:
                counts[holder.namespace] = counts.get(holder.namespace, 0) + 1
        return counts

    async def reconcile(self) -> None:
        """Look once. What cannot be done is tried again at the next call."""
        now, found = self._context.now(), {holder.uid: (holder, tickets) for holder, tickets in self._grantless()}
        self._found.observe(found, now)
        self._named &= found.keys()
        if not self._evictor.leading():
            return
        for uid, (holder, tickets) in found.items():
            if (since_s := self._found.seconds(uid, now)) >= NAMED_AFTER_S:
                await self._act(holder, describe_tickets(tickets), since_s)

    async def _act(self, holder: TicketHolder, tickets: str, since_s: float) -> None:
        policy, pod = self._context.configuration.value.grantless_pods, _reference(holder)
        stays = holder.static or holder.started
        if holder.uid not in self._named:
            self._named.add(holder.uid)
            end = (
                ""
                if stays or not policy.evicts(holder.namespace, policy.seconds)
                else (f". It is evicted after {policy.seconds:g} s without one")
            )
            message = (
                f"It has {tickets} of node {holder.node} and no grant, because Lamina did not place it there, so it "
                f"gets no GPU, and no other pod gets these{end}"
            )
            await self._evictor.events.record(PODS, pod, "NoGrant", message, warning=True)
        ends_soon = holder.leaves_s is not None and holder.leaves_s <= MAX_GRACE_S
        if stays or ends_soon or not policy.evicts(holder.namespace, since_s):
            return
        message = f"It had {tickets} of node {holder.node} without a grant"
        await self._evictor.try_evict(pod, "Evicted", message, grace_s=MAX_GRACE_S)

    def _grantless(self) -> Iterator[tuple[TicketHolder, dict[str, int]]]:
        ledger = self._context.ledger
        if not self._context.configuration.value.enabled:
            return  # another system places pods
        for holder in self._watches.ticket_holders.values():
            tickets = without_grant(holder, ledger.inventory(holder.node), self._has_grant)
            if tickets:
                yield holder, dict(tickets)

    def _has_grant(self, uid: str) -> bool:
        ledger = self._context.ledger
        return bool(ledger.grants_of(uid)) or ledger.hold_of(uid) is not None


def _reference(holder: TicketHolder) -> Object:
    return {"metadata": {"name": holder.pod, "namespace": holder.namespace, "uid": holder.uid}}
