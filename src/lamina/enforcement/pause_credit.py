"""For how long the work of a container comes before that of lower priorities, if it never pauses. Pure but for what it
remembers.

A container whose work comes first pays for the time in which it has work and a lower priority waits, from a credit that
its pauses renew. Without credit its work counts as any other: all get their shares. So requests that come in bursts are
served at once, and a container that always has work does not take the shares of its neighbors.

Example: a server has so many requests that it never pauses. For 10 s they come first. Then it gets its share, as the
training next to it does, until there are fewer requests than its share serves. One second without work lets the work of
the next nine come first.
"""

from collections.abc import Iterable

from msgspec import Struct

CREDIT_MS = 10_000.0
PER_PAUSE = 9.0
"""The credit of a ms without work: who pauses for a tenth of the time always comes first."""
WAITED_NS = 5_000_000
"""A container that waited for its share so lately has work, although none is on the GPU. A process that waits looks
again after 2 ms."""


class Worker(Struct, frozen=True):
    """A container on one GPU. `asked_at` and `waited_at` are when it last launched and waited for its share, in ns;
    `pause_ns` is how long it says that it pauses within its work, while others wait; `delays` is whether one of lower
    priority has work."""

    name: str
    signals: bool
    asked_at: int
    waited_at: int
    pause_ns: int
    delays: bool

    def pauses(self, now: int) -> bool:
        """Whether it has no work at the moment."""
        if self.signals or self.waited_at + WAITED_NS > now:
            return False
        return self.pause_ns == 0 or self.asked_at + self.pause_ns <= now


class PauseCredit:
    """The credit of the containers of one GPU."""

    def __init__(self) -> None:
        self._credit: dict[str, float] = {}

    def suffices(self, workers: Iterable[Worker], now: int, elapsed_ms: float) -> list[bool]:
        """Whether the work of each may come first."""
        before, self._credit = self._credit, {}
        for worker in workers:
            credit = before.get(worker.name, CREDIT_MS)
            if worker.pauses(now):
                credit += PER_PAUSE * elapsed_ms
            elif worker.delays:
                credit -= elapsed_ms
            self._credit[worker.name] = min(CREDIT_MS, max(0.0, credit))
        return [credit > 0 for credit in self._credit.values()]
