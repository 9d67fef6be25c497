"""Leader election: the replica that holds the Lease `lamina-controller` decides.

The holder renews the Lease every few seconds. Other replicas watch its resourceVersion: once it has not changed for the
Lease's duration, they may take the Lease. Only readings of the replica's own monotonic clock are compared, so a wall
clock that jumps has no effect; the times written in the Lease are for people.

A holder counts from before it sent the renewal, and for less than the Lease's duration, so it stops before another
replica may take over. That keeps two replicas from working against each other. It is not what keeps a GPU from being
granted twice, because a process may be paused between reading the clock and writing: `placement_lease` prevents that.
"""

import asyncio
import logging

from lamina.core.component_names import LEADER_LEASE
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import LEASES, AlreadyExists, Conflict, Kube, NotFound, Object, Unreachable
from lamina.ports.kube.moments import rfc3339_micro
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

LEASE_S = 10
"""The Lease is free when its holder has not renewed it for this long."""
LEADS_S = 7.0
"""How long a holder leads after one renewal."""
EVERY_S = 2.0
"""How often the holder renews the Lease."""
_MAX_TRANSITIONS = 2**31 - 1
"""What the API server takes. It refuses a Lease with more, and then no replica could lead."""


class LeaderElection:
    """One replica's part in the election. `identity` is the replica's own name."""

    def __init__(self, kube: Kube, clock: Clock, identity: str) -> None:
        self.identity = identity
        self.holder = ""
        """Who held the Lease when it was last read."""
        self.transitions = 0
        """How often the Lease has changed hands, as it was last read."""
        self._kube = kube
        self._clock = clock
        self._leads_until = float("-inf")
        self._observed_version = ""
        self._observed_at = 0.0

    @property
    def leading(self) -> bool:
        """Whether this replica may decide now."""
        return self._clock.monotonic() < self._leads_until

    @property
    def reason(self) -> str:
        """Why this replica does not lead, as a sentence, or nothing."""
        if self.leading:
            return ""
        if self.holder == self.identity:
            return f"this replica does not lead; it did not renew its Lease {LEADER_LEASE} within {LEADS_S:g} s"
        return f"this replica does not lead; the Lease {LEADER_LEASE} is held by {self.holder or 'no replica'}"

    async def run(self) -> None:
        """Hold the Lease or wait for it, until canceled."""
        failures = FailureLog(log, f"Cannot renew the Lease {LEADER_LEASE}: %s")
        await poll(self._try_in_time, self._clock, every_s=EVERY_S, failures=failures)

    async def _try_in_time(self) -> None:
        led_before = self.leading
        try:
            async with asyncio.timeout(LEADS_S):
                await self.try_lead()
        except TimeoutError as error:
            raise Unreachable("no answer") from error
        finally:
            if self.leading != led_before:
                log.info("This replica %s", "leads" if self.leading else "does not lead any more")

    async def try_lead(self) -> None:
        """Take or renew the Lease where that is allowed. Raises Outside."""
        started = self._clock.monotonic()
        try:
            lease = await self._kube.get(LEASES, LEADER_LEASE, namespace=self._kube.lamina_namespace)
        except NotFound:
            lease = None
        if lease is not None and not self._may_take(lease):
            self._leads_until = float("-inf")
            return
        try:
            if lease is None:
                await self._kube.create(LEASES, self._renewed(None, self.identity))
            else:
                await self._kube.replace(LEASES, self._renewed(lease, self.identity))
        except (AlreadyExists, Conflict, NotFound):
            return
        self.holder = self.identity
        self._leads_until = started + LEADS_S

    async def step_down(self) -> None:
        """Stop leading, and let another replica take over at once."""
        led, self._leads_until = self.leading, float("-inf")
        try:
            lease = await self._kube.get(LEASES, LEADER_LEASE, namespace=self._kube.lamina_namespace) if led else None
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.identity:
                await self._kube.replace(LEASES, self._renewed(lease, ""))
                self.holder = ""
        except Outside as error:
            log.warning("Cannot release the Lease %s: %s", LEADER_LEASE, error)

    def _may_take(self, lease: Object) -> bool:
        spec = lease.get("spec") or {}
        self.holder = str(spec.get("holderIdentity") or "")
        transitions = spec.get("leaseTransitions")
        self.transitions = transitions if isinstance(transitions, int) else 0
        version = str(lease["metadata"]["resourceVersion"])
        if version != self._observed_version:
            self._observed_version, self._observed_at = version, self._clock.monotonic()
        if self.holder in ("", self.identity):
            return True
        duration = spec.get("leaseDurationSeconds")
        return self._clock.monotonic() >= self._observed_at + (duration if isinstance(duration, int) else LEASE_S)

    def _renewed(self, lease: Object | None, holder: str) -> Object:
        before: Object = (lease.get("spec") if lease else None) or {}
        now = rfc3339_micro(self._clock.wall())
        changed = before.get("holderIdentity") != holder
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": LEASE_S,
            "acquireTime": now if changed else before.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": min(
                int(before.get("leaseTransitions") or 0) + (changed and bool(lease)), _MAX_TRANSITIONS
            ),
        }
        metadata = lease["metadata"] if lease else {"name": LEADER_LEASE, "namespace": self._kube.lamina_namespace}
        return {"metadata": metadata, "spec": spec}
