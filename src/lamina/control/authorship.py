"""Which grants this replica wrote itself, and since when it knows those that others wrote.

A grant that another replica wrote for a pod that is still pending may be one that it is binding the pod with at this
moment. Whoever takes such a grant over could have it withdrawn under his hands, and would then run a pod whose share
is given to somebody else. So it is left alone for as long as an attempt to bind may last.
"""

from collections import OrderedDict

_REMEMBERED = 20_000


class Authorship:
    """`longest_s` is how long an attempt to bind lasts at most. Times are of a monotonic clock."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._met: OrderedDict[str, float] = OrderedDict()

    def wrote(self, grant_uid: str) -> None:
        """The grant is ours."""
        self._note(grant_uid, float("-inf"))

    def settled(self, grant_uid: str, now: float) -> bool:
        """Whether nobody else can be binding a pod with the grant; others' grants are met when first asked about."""
        if grant_uid not in self._met:
            self._note(grant_uid, now)
        return now - self._met[grant_uid] >= self._longest_s

    def _note(self, grant_uid: str, since: float) -> None:
        self._met[grant_uid] = since
        if len(self._met) > _REMEMBERED:
            self._met.popitem(last=False)
