"""Which grants this replica wrote itself, and since when it knows the grants of other replicas.

Another replica's grant for a pod that is still pending may be the one with which that replica is binding the pod at
this moment. If this replica adopted it, the other one could still withdraw it, and the pod would run on a share that
is then given to another pod. So such a grant is left alone for as long as an attempt to bind may last.
"""

from collections import OrderedDict

_MOST_REMEMBERED = 20_000


class GrantOrigins:
    """`longest_attempt_s` is how long an attempt to bind lasts at most. Times are of a monotonic clock."""

    def __init__(self, longest_attempt_s: float) -> None:
        self._longest_attempt_s = longest_attempt_s
        self._known_since: OrderedDict[str, float] = OrderedDict()

    def record_own(self, grant_uid: str) -> None:
        """This replica wrote the grant."""
        self._remember(grant_uid, float("-inf"))

    def may_adopt(self, grant_uid: str, now: float) -> bool:
        """Whether no other replica can be binding a pod with the grant.

        The grant of another replica is known from the first call about it.
        """
        if grant_uid not in self._known_since:
            self._remember(grant_uid, now)
        return now - self._known_since[grant_uid] >= self._longest_attempt_s

    def _remember(self, grant_uid: str, since: float) -> None:
        self._known_since[grant_uid] = since
        if len(self._known_since) > _MOST_REMEMBERED:
            self._known_since.popitem(last=False)
