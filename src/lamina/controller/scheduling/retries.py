"""When pods that wait are tried again."""

from collections.abc import Callable, Set

from lamina.controller.context import Context
from lamina.controller.scheduling.expected_binds import ExpectedBinds
from lamina.controller.scheduling.waiting_pods import WaitingPods


class Retries:
    """Asks for another try soon after processes of deleted pods have ended, a ResourceClaim is no longer prepared, room
    was held in vain, a place was found for a pod next to others of its group, a quota of its namespace has changed, or
    this replica has begun to lead.

    Without a leader, pods are refused, and kube-scheduler does not try these again for a minute or more. A new leader
    does not know which were refused, so it asks for every pending pod. Only the leader filters, so only it knows of
    waiting pods.
    """

    def __init__(
        self,
        context: Context,
        expected: ExpectedBinds,
        waiting: WaitingPods,
        take_placed: Callable[[], Set[str]],
        leading: Callable[[], bool],
    ) -> None:
        """`take_placed` returns the UIDs of pods that have a place since the last call."""
        self._context = context
        self._expected = expected
        self._waiting = waiting
        self._take_placed = take_placed
        self._leading = leading
        self._led = False
        self._unwatched_ends = 0

    async def step(self) -> None:
        """Called once a second."""
        value = f"{self._context.clock.wall():.0f}"
        self._expected.lapse()
        freed_since, placed = self._expected.freed_since(), self._take_placed()
        allowed = self._context.quotas.take_changed()
        led, self._led = self._led, self._leading()
        if self._led and not led:
            for pod in self._context.pending.all():
                self._waiting.observe(pod, self._context.now(), fits=False)
        ended = self._context.ledger.silent_releases + self._context.capacity.claims.deallocations
        if ended != self._unwatched_ends or (self._led and not led):
            self._unwatched_ends = ended
            await self._waiting.retry(value)
            return
        if freed_since is not None:
            await self._waiting.retry(value, refused_since=freed_since)
        await self._waiting.retry_in(value, allowed)
        await self._waiting.retry_pods(value, placed)
