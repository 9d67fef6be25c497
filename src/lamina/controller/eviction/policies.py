"""The reasons for which one replica evicts pods, and the loops that look for them."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lamina.controller.eviction import (
    borrowers,
    defragmentation,
    grantless_holders,
    idle_shares,
    preemption,
    stuck_pods,
)
from lamina.controller.eviction.borrowers import BorrowerEvictions
from lamina.controller.eviction.defragmentation import Defragmenter
from lamina.controller.eviction.grantless_holders import GrantlessHolders
from lamina.controller.eviction.idle_shares import IdleEvictions
from lamina.controller.eviction.preemption import Preemption
from lamina.controller.eviction.stuck_pods import StuckPods
from lamina.ports.clock import Clock
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)
Loop = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Policies:
    """`preemption` is None where only kube-scheduler evicts, `stuck` where agents serve no claims."""

    grantless: GrantlessHolders
    defragmentation: Defragmenter
    idle_shares: IdleEvictions
    borrowers: BorrowerEvictions
    preemption: Preemption | None
    stuck: StuckPods | None

    def loops(self, clock: Clock) -> dict[str, Loop]:
        """The loops by name."""
        found: dict[str, tuple[float, Loop]] = {
            "pods without a grant": (grantless_holders.EVERY_S, self.grantless.reconcile),
            "defragmentation": (defragmentation.EVERY_S, self.defragmentation.reconcile),
            "idle shares": (idle_shares.EVERY_S, self.idle_shares.reconcile),
            "borrowers": (borrowers.EVERY_S, self.borrowers.reconcile),
        }
        if self.preemption is not None:
            found["preemption"] = preemption.EVERY_S, self.preemption.reconcile
        if self.stuck is not None:
            found["pods with claims that cannot start"] = stuck_pods.EVERY_S, self.stuck.reconcile
        return {name: _polling(name, clock, *each) for name, each in found.items()}


def _polling(name: str, clock: Clock, every_s: float, reconcile: Loop) -> Loop:
    failures = FailureLog(log, f"Evictions pause ({name}): %s")
    return lambda: poll(reconcile, clock, every_s=every_s, delay_s=every_s, failures=failures)
