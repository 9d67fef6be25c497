"""The reasons for which one replica evicts pods, and the loops that look for them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lamina.controller.eviction import grantless_holders, preemption, stuck_pods
from lamina.controller.eviction.grantless_holders import GrantlessHolders
from lamina.controller.eviction.preemption import Preemption
from lamina.controller.eviction.stuck_pods import StuckPods
from lamina.ports.clock import Clock
from lamina.ports.polling import poll


@dataclass(frozen=True)
class Policies:
    """`preemption` is None where only kube-scheduler evicts, `stuck` where agents serve no claims."""

    grantless: GrantlessHolders
    preemption: Preemption | None
    stuck: StuckPods | None

    def loops(self, clock: Clock) -> dict[str, Callable[[], Awaitable[None]]]:
        """The loops by name."""
        loops = {"pods without a grant": _every(clock, grantless_holders.EVERY_S, self.grantless.reconcile)}
        if self.preemption is not None:
            loops["preemption"] = _every(clock, preemption.EVERY_S, self.preemption.reconcile)
        if self.stuck is not None:
            loops["pods with claims that cannot start"] = _every(clock, stuck_pods.EVERY_S, self.stuck.reconcile)
        return loops


def _every(clock: Clock, seconds: float, reconcile: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    return lambda: poll(reconcile, clock, every_s=seconds, delay_s=seconds)
