"""How a GPU's time is really divided while several containers have work, from what the driver measures. Pure but for
what it remembers.

Of a millisecond in which one container had work, that container got all. If several had work, the arbiter estimates
their parts as if turns were equally long. How long the driver's time slices really are next to the kernels, and how
much of a slice a program leaves unused between two kernels, decides how wrong that is. Nothing says how long the slices
are, so it is inferred: twice a second the driver says for which part of the last second each container worked. What is
left of that after the time in which a container was alone, over what was estimated for the time in which it was not, is
its factor.

A factor does not depend on what neighbors claim: if their claims make the estimate for a container smaller, its factor
grows by as much. If a neighbor hides work, the others seem to be alone while it works; then the time in which they
seem to be alone counts less, by as much as the driver reports of the hidden work.

Example: two containers have work all of the time, and each is estimated to have got half of it. The driver says 70 and
30 percent. The factors are 1.4 and 0.6, so of each millisecond the first is charged 0.7 ms and the second 0.3 ms.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from lamina.enforcement.claims import Confirmation

COVERED_NS = 1_000_000_000
"""The driver's figures are averages of so long a time before they were asked for."""
NEWEST = 0.3
"""The weight of the newest figure. It is a whole percent, and its second does not begin exactly where ours does."""
MOST = 4.0
"""A larger factor means that the driver measures something else."""
GRAIN = 0.005
"""Both figures are moved by this, so that half a percent more or less of little work changes little."""
MEASURED = 0.5
"""Where the driver reports less than this part of all that was estimated, it does not measure such work."""


class WorkEstimate(Struct, frozen=True):
    """For how many ns a container was alone on the GPU until now, how many it was estimated to have got next to others,
    and what the driver says of it."""

    name: str
    alone: float
    shared: float
    confirmed: Confirmation | None


class Factors(Struct, frozen=True):
    """What counts of the time in which a container was alone, and of its estimated part of the other time."""

    alone: float = 1.0
    shared: float = 1.0


_NONE = Factors()


class _Figures(Struct, frozen=True):
    """Parts of the GPU's time: by the driver, and as estimated. In the `true` part of `alone` no other hid work."""

    work: float
    alone: float
    shared: float
    true: float = 0.0

    @property
    def hidden(self) -> float:
        """What the driver reports of it beyond all that was estimated."""
        return max(0.0, self.work - self.alone - self.shared)

    def next_to(self, hidden: float) -> "_Figures":
        """Where others hide so much work."""
        true = self.alone - min(hidden, max(0.0, self.alone - self.work))
        return _Figures(self.work, self.alone, self.shared, true)

    def moved(self, newer: "_Figures") -> "_Figures":
        """The average, in which newer ones count more."""
        return _Figures(*((1 - NEWEST) * a + NEWEST * b for a, b in zip(astuple(self), astuple(newer), strict=True)))

    @property
    def factors(self) -> Factors:
        rest = max(0.0, self.work - self.true)
        return Factors((self.true + GRAIN) / (self.alone + GRAIN), min(MOST, (rest + GRAIN) / (self.shared + GRAIN)))


class Corrections:
    """The factors of one GPU's containers."""

    def __init__(self) -> None:
        self._past: deque[tuple[int, dict[str, WorkEstimate]]] = deque()
        self._asked_at = 0
        self._averages: dict[str, _Figures] = {}
        self._factors: dict[str, Factors] = {}

    @property
    def known(self) -> bool:
        """Whether the driver measures this GPU's work, so that there are factors."""
        return bool(self._factors)

    def factors(self, name: str) -> Factors:
        """What a container really got, over what was estimated."""
        return self._factors.get(name, _NONE)

    def observe(self, now: int, estimated: Sequence[WorkEstimate]) -> None:
        """Learn from the driver's figures, where they are newer than before."""
        self._past.append((now, {each.name: each for each in estimated}))
        while len(self._past) > 1 and self._past[1][0] <= now - COVERED_NS:
            self._past.popleft()
        asked_at = max((each.confirmed.asked_at for each in estimated if each.confirmed is not None), default=0)
        since, before = self._past[0]
        if asked_at <= self._asked_at or now - since < COVERED_NS // 2:
            return
        self._asked_at = asked_at
        self._learn(_by_owner(estimated, before, now - since))
        self._factors = {
            each.name: self._averages[_owner(each)].factors for each in estimated if _owner(each) in self._averages
        }

    def _learn(self, figures: Mapping[str, _Figures]) -> None:
        measured = sum(each.work for each in figures.values())
        if measured < MEASURED * sum(each.alone + each.shared for each in figures.values()):
            self._averages = {}
            return
        hidden = sum(each.hidden for each in figures.values())
        newest = {owner: each.next_to(hidden - each.hidden) for owner, each in figures.items()}
        self._averages = {
            owner: self._averages[owner].moved(newer) if owner in self._averages else newer
            for owner, newer in newest.items()
        }


def _owner(each: WorkEstimate) -> str:
    return each.name if each.confirmed is None else each.confirmed.owner or each.name


def _by_owner(estimated: Sequence[WorkEstimate], before: Mapping[str, WorkEstimate], ns: int) -> dict[str, _Figures]:
    """Of those that the driver measures, over the last `ns`."""
    found: dict[str, _Figures] = {}
    for each in estimated:
        if each.confirmed is not None and each.confirmed.work is not None:
            then = before.get(each.name, each)
            past = found.get(_owner(each), _Figures(each.confirmed.work, 0.0, 0.0))
            alone, shared = (each.alone - then.alone) / ns, (each.shared - then.shared) / ns
            found[_owner(each)] = _Figures(past.work, past.alone + alone, past.shared + shared)
    return found
