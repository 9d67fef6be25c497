"""Which pods have had to keep borrowed memory on the host, and since when. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina.agent.containers.paths import pod_uid_of
from lamina.core.borrowers import MAX_DISPLACED, BorrowerPolicy, DisplacedBorrower

CALM_S = 5.0
"""A borrower that returns its memory for so long is another case when it is displaced again."""


class DisplacedBorrowers:
    """The pods of one node. `found` are those that have been displaced for as long as the policy says."""

    def __init__(self, policy: BorrowerPolicy) -> None:
        self._policy = policy
        self._since: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self.found: tuple[DisplacedBorrower, ...] = ()

    def observe(self, displaced: Mapping[str, Path], pods: Iterable[str], now: float) -> bool:
        """`displaced` are folders of containers by GPU, `pods` the UIDs of pods with grants, `now` is since 1970.
        Returns whether `found` has changed."""
        if not self._policy.after_s:
            return False
        for uid in {pod_uid_of(folder.name) for folder in displaced.values()}.intersection(pods):
            self._since.setdefault(uid, now)
            self._last[uid] = now
        for uid in [uid for uid, last in self._last.items() if now - last > CALM_S]:
            del self._since[uid], self._last[uid]
        due = ((since, uid) for uid, since in self._since.items() if now - since >= self._policy.after_s)
        before = self.found
        self.found = tuple(DisplacedBorrower(pod_uid=uid, since=int(since)) for since, uid in sorted(due))
        self.found = self.found[:MAX_DISPLACED]
        return self.found != before
