"""How a GPU's time is really divided while several containers have work, from what the driver says. Pure but for
what it remembers.

Of a millisecond in which one container had work, that container got all. If several had work, the arbiter estimates
their parts as if turns were equally long. How long the driver's time slices really are next to the kernels, and how
much of a slice a program leaves unused between two kernels, decides how wrong that is. Nothing says how long the slices
are. But twice a second the driver says for which part of the last second each container worked.

A driver may measure work, or only sample it: an H200 gives all of 200 ms to the process that it found on the GPU, so of
two programs that have half of the GPU each, it may say 20 and 80 percent of a second. Figures are taken for samples if
they often jump although what was estimated does not.

Where the driver samples, figures are averaged for as long as they scatter, up to ten minutes. What is left of the
average after the time in which a container was alone, over what was estimated for the time in which it was not, is its
factor. Differences from the estimate count only as far as they are larger than what scatter explains, and only where
one is large: on cards that sample, estimates were within 2 points, except where slices are much shorter than usual, or
work is hidden. A factor does not depend on what neighbors claim: if their claims make the estimate for a container
smaller, its factor grows by as much.

Where the driver measures work, differences are charged by `driver_charges`, and there are no such factors. But the
estimates take brief work to have had the GPU to itself. Where slices are shorter than that, they are so wrong that
others are made if one difference is large, for which brief work is as any other.

If a neighbor hides work, the others seem to be alone while it works. So the time in which they seem to be alone counts
less, by as much as the driver reports of the hidden work.

Example: two containers have work all of the time, and each is estimated to have got half of it. The driver samples, and
says 70 and 30 percent on average. The factors are 1.4 and 0.6, so of each millisecond the first is charged 0.7 ms and
the second 0.3 ms. If it says 58 and 42 percent, the factors stay 1.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

from msgspec import Struct
from msgspec.structs import astuple

from lamina.enforcement.driver_figures import COVERED_NS, Confirmation, SlidingWindow, newest_figure, owner_of

MIN_FIGURES, MAX_FIGURES = 3, 1200
"""Of how many figures an average is, at two a second."""
ACCURACY = 0.01
"""How far an average may be off by the scatter of its figures, which decides how many it is of."""
TOLERATED = 0.015
"""An average whose error is smaller is taken as it is."""
CHANCE = 3.0
"""How many times as large as the rest of its error a difference is that chance may explain."""
JUMP = 0.1
"""A figure has jumped if its difference from the estimate is so much larger than half a second earlier, and that of the
others together so much smaller, or the reverse."""
JUMPS, JUMPS_AMONG = 6, 40
"""With this many jumps among the last figures of a container, figures are taken for samples. A container that begins to
work, or ends, makes two or three."""
SAMPLED_DEVIATION = 0.2
"""The standard deviation that samples have at least, because a few may be alike by chance."""
DOUBT = 0.15
"""Up to so much, a difference is taken to be in averages of samples rather than in the estimate."""
FIGURES_TO_KNOW = 6
"""Fewer may be alike by chance."""
MAX_FACTOR = 4.0
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
    """Parts of the GPU's time: by the driver, and as estimated."""

    work: float
    alone: float
    shared: float

    @property
    def difference(self) -> float:
        """How much more the driver reports than was estimated."""
        return self.work - self.alone - self.shared

    def moved(self, newer: "_Figures", weight: float) -> "_Figures":
        """The average, in which the newer ones have this weight."""
        return _Figures(*((1 - weight) * a + weight * b for a, b in zip(astuple(self), astuple(newer), strict=True)))

    @property
    def hidden(self) -> float:
        """What the driver reports of it beyond all that was estimated."""
        return max(0.0, self.difference)

    def factors(self, hidden: float) -> Factors:
        """Where others hide so much work: during it, a container was not alone."""
        true = self.alone - min(hidden, max(0.0, self.alone - self.work))
        rest = max(0.0, self.work - true)
        return Factors((true + GRAIN) / (self.alone + GRAIN), min(MAX_FACTOR, (rest + GRAIN) / (self.shared + GRAIN)))


class _Average(Struct, frozen=True):
    """The average of `count` figures, the variance of the differences among them, the latest difference, and a bit for
    each of the latest figures that jumped."""

    figures: _Figures
    latest: float
    count: int = 1
    variance: float = 0.0
    jumps: int = 0

    def moved(self, newer: _Figures, *, jumped: bool) -> "_Average":
        """With one more."""
        weight = 1 / min(self.count + 1, self._lasting)
        apart = newer.difference - self.figures.difference
        variance = (1 - weight) * (self.variance + weight * apart**2)
        jumps = (self.jumps << 1 | jumped) & (1 << JUMPS_AMONG) - 1
        return _Average(self.figures.moved(newer, weight), newer.difference, self.count + 1, variance, jumps)

    @property
    def sampled(self) -> bool:
        """Whether these figures are taken for samples."""
        return self.jumps.bit_count() >= JUMPS

    @property
    def _lasting(self) -> float:
        """Of how many figures it is in the end. Where they scatter, it takes more of them."""
        return min(MAX_FIGURES, max(MIN_FIGURES, self.variance / ACCURACY**2))

    def certain(self, least_deviation: float) -> float:
        """As much of the driver's difference from the estimate as chance does not explain, where figures have at least
        this standard deviation."""
        if self.count < FIGURES_TO_KNOW:
            return 0.0
        error = sqrt(max(self.variance, least_deviation**2) / min(self.count, self._lasting))
        chance = CHANCE * max(0.0, error - TOLERATED)
        return max(0.0, self.figures.difference - chance) + min(0.0, self.figures.difference + chance)

    def believed(self, difference: float) -> _Figures:
        """With so much of the difference."""
        alone, shared = self.figures.alone, self.figures.shared
        return _Figures(alone + shared + difference, alone, shared)


class DriverFactors:
    """The factors of one GPU's containers."""

    def __init__(self) -> None:
        self._past: SlidingWindow[Mapping[str, WorkEstimate]] = SlidingWindow()
        self._asked_at = 0
        self._averages: dict[str, _Average] = {}
        self._factors: dict[str, Factors] = {}
        self.wrong = False
        """Whether an estimate for these containers was found to be wrong by what the driver measured."""

    @property
    def measured(self) -> bool:
        """Whether the driver measures this GPU's work, and does not only sample it, as far as is known yet."""
        known = [each.count >= FIGURES_TO_KNOW for each in self._averages.values()]
        return bool(known) and all(known) and not self.sampled

    @property
    def sampled(self) -> bool:
        """Whether the driver only samples this GPU's work, as far as is known yet."""
        return any(each.sampled for each in self._averages.values())

    def factors(self, name: str) -> Factors:
        """What a container really got, over what was estimated."""
        return self._factors.get(name, _NONE)

    def observe(self, now: int, estimated: Sequence[WorkEstimate]) -> None:
        """Learn from the driver's figures, where they are newer than before."""
        since, before = self._past.add(now, {each.name: each for each in estimated})
        asked_at = newest_figure(estimated)
        if asked_at <= self._asked_at or now - since < COVERED_NS // 2:
            return
        self._asked_at = asked_at
        self._learn(_by_owner(estimated, before, now - since))
        self._doubt_estimates()
        factors = self._factors_by_owner()
        self._factors = {each.name: factors[owner_of(each)] for each in estimated if owner_of(each) in factors}

    def _learn(self, figures: Mapping[str, _Figures]) -> None:
        driver = sum(each.work for each in figures.values())
        if driver < MEASURED * sum(each.alone + each.shared for each in figures.values()):
            self._averages = {}
        elif figures.keys() != self._averages.keys():
            self.wrong = self.wrong and not self._averages
            self._averages = {owner: _Average(each, each.difference) for owner, each in figures.items()}
        else:
            moves = {owner: newer.difference - self._averages[owner].latest for owner, newer in figures.items()}
            total = sum(moves.values())
            self._averages = {
                owner: self._averages[owner].moved(newer, jumped=_jumped(moves[owner], total - moves[owner]))
                for owner, newer in figures.items()
            }

    def _doubt_estimates(self) -> None:
        """If an estimate is found to be wrong, others are made from now on, and all is learned again."""
        if self.sampled:
            self.wrong = False
        elif not self.wrong and self.measured:
            self.wrong = any(abs(each.certain(0.0)) > DOUBT for each in self._averages.values())
            if self.wrong:
                self._averages = {}
                self._past.clear()

    def _factors_by_owner(self) -> dict[str, Factors]:
        deviation = SAMPLED_DEVIATION if self.sampled else 0.0
        certain = {owner: each.certain(deviation) for owner, each in self._averages.items()}
        counts = any(abs(each) > DOUBT for each in certain.values())
        believed = {owner: each.believed(counts * certain[owner]) for owner, each in self._averages.items()}
        hidden = sum(each.hidden for each in believed.values())
        found = {owner: each.factors(hidden - each.hidden) for owner, each in believed.items()}
        return found if self.sampled else {owner: Factors(alone=each.alone) for owner, each in found.items()}


def _jumped(move: float, others: float) -> bool:
    """Samples that one container has more than before, others have less."""
    return min(abs(move), abs(others)) > JUMP and move * others < 0


def _by_owner(estimated: Sequence[WorkEstimate], before: Mapping[str, WorkEstimate], ns: int) -> dict[str, _Figures]:
    """Of those that the driver measures, over the last `ns`."""
    found: dict[str, _Figures] = {}
    for each in estimated:
        if each.confirmed is not None and each.confirmed.work is not None:
            then = before.get(each.name, each)
            past = found.get(owner_of(each), _Figures(each.confirmed.work, 0.0, 0.0))
            alone, shared = (each.alone - then.alone) / ns, (each.shared - then.shared) / ns
            found[owner_of(each)] = _Figures(past.work, past.alone + alone, past.shared + shared)
    return found
