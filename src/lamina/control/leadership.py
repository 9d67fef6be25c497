"""Which replica decides: the one that holds the Lease lamina-system/lamina-control.

A holder writes the Lease anew every few seconds. Others watch its resourceVersion: where it stands still for as long
as the holder promised to be heard of, the Lease may be taken. Only readings of the own monotonic clock are compared,
so a wall clock that jumps moves nothing; the times written in the Lease are for people.

A holder counts from before it asked, for less than it promised, and so stops before anybody may follow. That keeps
two replicas from working against each other. It is not what keeps a GPU from being given away twice, because a
process may be stopped between looking at a clock and writing: that is `turns`.
"""

import asyncio
import logging
from collections.abc import Callable

from lamina.dialects.config import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.errors import Outside
from lamina.ports.kube import LEASES, AlreadyExists, Conflict, Kube, NotFound, Object
from lamina.ports.kube.moments import rfc3339_micro

log = logging.getLogger(__name__)

NAME = "lamina-control"
PROMISED_S = 10
"""After so long without a word of its holder the Lease is free."""
LEADS_S = 7.0
"""So long a holder leads on one word of its own."""
EVERY_S = 2.0


class Leadership:
    """One replica's part. `now` is a monotonic clock, `wall` Unix time; `identity` is the replica's own name."""

    def __init__(self, kube: Kube, identity: str, *, now: Callable[[], float], wall: Callable[[], float]) -> None:
        self.identity = identity
        self.holder = ""
        """Who held the Lease when it was last read."""
        self._kube = kube
        self._now = now
        self._wall = wall
        self._until = float("-inf")
        self._seen = ""
        self._seen_at = 0.0

    @property
    def leading(self) -> bool:
        """Whether this replica may decide now."""
        return self._now() < self._until

    @property
    def lacking(self) -> str:
        """The sentence that says why it may not, or nothing."""
        if self.leading:
            return ""
        if self.holder == self.identity:
            return f"this replica does not lead; it did not renew its Lease {NAME} within {LEADS_S:g} s"
        return f"this replica does not lead; the Lease {NAME} is held by {self.holder or 'nobody'}"

    async def run(self) -> None:
        """Hold the Lease or wait for it, until cancelled."""
        while True:
            before = self.leading
            try:
                async with asyncio.timeout(LEADS_S):
                    await self.attempt()
            except (Outside, TimeoutError) as error:
                log.warning("The Lease %s could not be renewed: %s", NAME, str(error) or "no answer")
            if self.leading != before:
                log.info("This replica %s", "leads" if self.leading else "follows")
            await asyncio.sleep(EVERY_S)

    async def attempt(self) -> None:
        """Take or renew the Lease where that is allowed. Raises Outside."""
        began = self._now()
        try:
            lease = await self._kube.get(LEASES, NAME, namespace=NAMESPACE)
        except NotFound:
            lease = None
        if lease is not None and not self._free(lease):
            self._until = float("-inf")
            return
        try:
            if lease is None:
                await self._kube.create(LEASES, self._written(None, self.identity))
            else:
                await self._kube.replace(LEASES, self._written(lease, self.identity))
        except (AlreadyExists, Conflict, NotFound):
            return
        self.holder = self.identity
        self._until = began + LEADS_S

    async def step_down(self) -> None:
        """Stop leading, and let the next replica follow at once."""
        led, self._until = self.leading, float("-inf")
        try:
            lease = await self._kube.get(LEASES, NAME, namespace=NAMESPACE) if led else None
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.identity:
                await self._kube.replace(LEASES, self._written(lease, ""))
                self.holder = ""
        except Outside as error:
            log.warning("The Lease %s could not be given back: %s", NAME, error)

    def _free(self, lease: Object) -> bool:
        spec = lease.get("spec") or {}
        self.holder = str(spec.get("holderIdentity") or "")
        version = str(lease["metadata"]["resourceVersion"])
        if version != self._seen:
            self._seen, self._seen_at = version, self._now()
        if self.holder in ("", self.identity):
            return True
        promised = spec.get("leaseDurationSeconds")
        return self._now() >= self._seen_at + (promised if isinstance(promised, int) else PROMISED_S)

    def _written(self, lease: Object | None, holder: str) -> Object:
        before: Object = (lease.get("spec") if lease else None) or {}
        moment = rfc3339_micro(self._wall())
        changed = before.get("holderIdentity") != holder
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": PROMISED_S,
            "acquireTime": moment if changed else before.get("acquireTime", moment),
            "renewTime": moment,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (changed and bool(lease)),
        }
        meta = lease["metadata"] if lease else {"name": NAME, "namespace": NAMESPACE}
        return {"metadata": meta, "spec": spec}
