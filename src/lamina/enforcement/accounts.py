"""What containers were charged and did not get, which is refunded. Pure but for what it remembers.

A container is charged all of the time in which it had work on the GPU, and gets a part of it. Of the last milliseconds
the difference can still change, because work is reported when it is done; so the refund of these is open, and that of
earlier ones is settled.

Work that takes longer than the window of milliseconds, as a kernel of 100 ms does while others have turns, is charged
when it is done, for milliseconds that are settled by then. What such work got meanwhile is kept until it is charged.
"""

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from lamina.enforcement import layout
from lamina.enforcement.activity import NOTHING, WINDOW, Fractions
from lamina.enforcement.driver_charges import AccountState, DriverCharges
from lamina.enforcement.driver_factors import DriverFactors, Factors, WorkEstimate
from lamina.enforcement.driver_figures import Confirmation

BLOCKED_NS = 500_000_000
"""For so long, time that others got is no time that a container left unused; until it does nothing."""
_NOISE_NS = 1_000_000
"""Bins count microseconds, and charges nanoseconds."""


class TimeEstimate(Struct, frozen=True):
    """Of one container, by ms and in parts of it: for how long it had work, what of that was charged yet, for how long
    it was alone, and what it is estimated to have got next to others. `reported` is the part of its work that is done.
    """

    shown: Fractions
    charged: Fractions
    alone: Fractions
    shared: Fractions
    reported: Fractions

    def got(self, factors: Factors) -> Fractions:
        """What it got, whether it is charged yet or not."""
        return np.minimum(self.alone * factors.alone + self.shared * factors.shared, 1)


_NONE = TimeEstimate(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)


class AccountHolder(Struct, frozen=True):
    """A container with an account. `share` is a fraction of the GPU's time; `charged_ns` is what it says that it was
    charged, ever; `works` is whether it had work or asked for time lately."""

    name: str
    share: float
    charged_ns: int
    works: bool
    estimate: TimeEstimate | None
    confirmed: Confirmation | None


class Refund(Struct, frozen=True):
    """In ns: what is refunded in total, and for how long others lately had the GPU while the container had work."""

    total: float
    blocked: float


class _Account:
    def __init__(self, refunded: int, charged_ns: int) -> None:
        self._settled = float(refunded)
        self._alone, self._shared, self._there = 0.0, 0.0, 0.0
        self._charged_before, self._charged = charged_ns, 0.0
        self._kept = np.zeros(3)
        """Of work that is not charged yet: for how long it was there, was alone, and is estimated to have got else."""
        self._open, self._excess = _NONE, NOTHING
        self._blocked: deque[tuple[int, float]] = deque()

    def advance(self, moved: int, estimate: TimeEstimate) -> tuple[float, float]:
        """The window has moved on. Returns for how long the container was alone, ever, and what it is
        estimated to have got next to others."""
        past, rest = self._open, 1 - self._open.reported[:moved]
        self._settled += _sum(self._excess[:moved])
        self._charged += _sum(past.charged[:moved])
        self._alone += _sum(past.alone[:moved])
        self._shared += _sum(past.shared[:moved])
        self._there += _sum(past.shown[:moved])
        self._kept += [_sum(each[:moved] * rest) for each in (past.shown, past.alone, past.shared)]
        self._open = estimate
        return self._alone + _sum(estimate.alone), self._shared + _sum(estimate.shared)

    def state(self, holder: AccountHolder, alone: float, refund: float, factors: Factors) -> AccountState:
        """The account as it is after this refund. `alone` is for how long the container was alone, ever."""
        return AccountState(
            name=holder.name,
            share=holder.share,
            net_ns=holder.charged_ns - refund,
            alone_ns=alone,
            there_ns=self._there + _sum(self._open.shown),
            alone_factor=factors.alone,
            confirmed=holder.confirmed,
        )

    def refund(self, charged_ns: int, factors: Factors, got: Fractions) -> float:
        """What is refunded when what was estimated counts by this factor, so that the container got this by ms."""
        self._charge_late(charged_ns, factors)
        self._excess = np.maximum(self._open.charged - got * self._open.reported, 0)
        return self._settled + _sum(self._excess)

    def blocked(self, now: int, moved: int, works: bool, got: Fractions, all_got: Fractions) -> float:
        """For how long others had the GPU while this container had work, lately. By ms, it got `got`, and all
        containers `all_got`.

        Work in the GPU's queue does not show while others have the GPU: of a kernel of 0.1 ms for which a program
        waits, only these 0.1 ms do. So a container that works, see RECENT_NS in the arbiter, waits for the others.
        """
        if not works:
            self._blocked.clear()
        newest = (np.maximum(all_got, self._open.shown) - got)[WINDOW - moved :]
        self._blocked.append((now, works * _sum(np.maximum(newest, 0))))
        while self._blocked[0][0] <= now - BLOCKED_NS:
            self._blocked.popleft()
        return sum(ns for _, ns in self._blocked)

    def _charge_late(self, charged_ns: int, factors: Factors) -> None:
        """Refund what was charged only now for milliseconds before the window."""
        late = charged_ns - self._charged_before - self._charged - _sum(self._open.charged)
        if abs(late) < _NOISE_NS:
            return
        self._charged_before += int(late)
        part = min(1.0, max(0.0, late) / max(1.0, float(self._kept[0])))
        work, alone, shared = (float(each) for each in self._kept * part)
        self._kept *= 1 - part
        self._settled += work - min(work, alone * factors.alone + shared * factors.shared)


def _sum(parts: Fractions) -> float:
    """In ns."""
    return float(parts.sum()) * layout.BIN_NS


class Accounts:
    """Those of the containers on one GPU."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._factors = DriverFactors()
        self._charges = DriverCharges()
        self._last = 0

    @property
    def wrong(self) -> bool:
        """Whether brief work was found not to have had the GPU to itself."""
        return self._factors.wrong

    @property
    def sampled(self) -> bool:
        """Whether the driver's figures are samples, which are wrong for seconds."""
        return self._factors.sampled

    def got(self, name: str, estimate: TimeEstimate) -> Fractions:
        """What a container got, as far as the driver's figures are known."""
        return estimate.got(self._factors.factors(name))

    def refunds(self, now: int, holders: Sequence[AccountHolder], refunded: Mapping[str, int]) -> list[Refund]:
        """`refunded` tells what one that is new here was refunded before."""
        last = now // layout.BIN_NS
        moved = max(0, min(last - self._last, WINDOW)) if self._last else WINDOW
        self._last = last
        known = {
            each.name: self._accounts.get(each.name) or _Account(refunded.get(each.name, 0), each.charged_ns)
            for each in holders
        }
        self._accounts = known
        estimated = [
            WorkEstimate(each.name, *known[each.name].advance(moved, each.estimate or _NONE), each.confirmed)
            for each in holders
        ]
        self._factors.observe(now, estimated)
        got = [self.got(each.name, each.estimate or _NONE) for each in holders]
        all_got = np.minimum(sum(got, NOTHING), 1)
        totals = [
            known[each.name].refund(each.charged_ns, self._factors.factors(each.name), own)
            for each, own in zip(holders, got, strict=True)
        ]
        states = [
            known[each.name].state(each, estimate.alone, total, self._factors.factors(each.name))
            for each, estimate, total in zip(holders, estimated, totals, strict=True)
        ]
        self._charges.observe(now, states, measured=self._factors.measured)
        return [
            Refund(
                total - self._charges.charged(each.name),
                known[each.name].blocked(now, moved, each.works, own, all_got),
            )
            for each, total, own in zip(holders, totals, got, strict=True)
        ]
