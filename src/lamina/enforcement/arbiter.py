"""Who may use how much of a GPU's time now, decided from what all of its containers do. Pure but for what it remembers.

Processes take turns on a GPU, so the time in which a container has work there is not the time that it gets. From how
long each had work in every millisecond follows what each got, when turns are equally long; the difference is refunded.
What containers of the policy `weight` leave is lent to those that wait. A container of higher priority that has work
closes the gates of the others, as long as `pause_credit` allows. Reported work is discounted by `work_credit`.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, structs

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.accounts import AccountHolder, Accounts, Refund, TimeEstimate
from lamina.enforcement.activity import WINDOW, Activity, Fractions
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.launch_windows import Launcher, LaunchWindows
from lamina.enforcement.pause_credit import PauseCredit, Worker
from lamina.enforcement.work_credit import MEASURED, SAMPLED, ReportedWork, WorkCredit

RECENT_NS = 50_000_000
"""A container works until it has done nothing for this long: a pause between two launches is none."""
HUNGRY_NS = 100_000_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_S, _W = (_NODES + 1) / 2, _WEIGHTS / 2
_SPARE, _HEADROOM = 0.05, 1.5
_TURN_US = 15_000
"""Of which turns have the part that is left to low priorities: one and a half times as long as from one decision to the
next, because not all of it is used."""
_BEGINNING = 20


class Tenant(Struct, frozen=True, kw_only=True):
    """A container on the GPU. `share` is a fraction of the GPU's time, to which idle time is added up to `most`; a
    smaller `priority` is higher. `launch_ns` and `occupied_ns` are those of its usage file.

    `confirmed` is what the driver says of it. None takes the container at its word.
    """

    name: str
    share: float
    most: float = 1.0
    policy: ComputePolicy
    priority: int
    activity: Activity
    launch_ns: int = 0
    occupied_ns: int = 0
    gpus: int = 1
    """How many the container has."""
    signals: bool = False
    """It signals that it has work; see native/facade/compute/signals.h."""
    pause_ns: int = 0
    """How long it pauses within its work, by its own account."""
    confirmed: Confirmation | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """What a container may do now. `rate` is what it may use with what is lent, as a fraction of the GPU's time;
    `blocked_ns` is for how long others lately had the GPU while it had work, which is not time that it left unused;
    `window` is when it launches, see launch_window.h; `heeds` are those whose signals it heeds, and `turns` a word that
    changes when it may launch for a moment nevertheless."""

    closed: bool
    watched: bool
    rate: float
    refund_ns: int
    blocked_ns: int = 0
    window: int = 0
    heeds: tuple[str, ...] = ()
    turns: int = 0


def got(brief: Fractions, worked: Fractions) -> Fractions:
    """How much of each bin every container got; rows are containers, columns bins.

    Brief work had the GPU to itself. Of the rest of the bin each process with other work gets an equal part: 2.3 in
    `worked` is two processes all the time and one for 0.3 of it. When in the bin each had work is not known, so it is
    taken as independent: one that has work with n others gets 1 / (n + 1), which is the integral of s ** n, and the
    product over all of (1 - f + f s) mixes the cases.
    """
    alone = brief / np.maximum(brief.sum(axis=0), 1)
    rest = np.maximum(1 - alone.sum(axis=0), 0) / np.maximum(1 - alone, 1e-9)
    within = worked / np.maximum(1 - alone, 1e-3)  # of the time in which it has no brief work
    whole = np.floor(within)[:, :, None]
    part = within[:, :, None] - whole
    one = 1 - part + part * _S
    log_one = np.log(one)
    others = (whole * np.log(_S) + log_one).sum(axis=0) - log_one  # and what of its own works all of the time
    own = whole * one / _S + part
    result: Fractions = alone + (own * np.exp(others)) @ _W * rest * (1 - alone)
    return result


class Arbiter:
    """Decides for the containers of one GPU; remembers what it refunded to each."""

    def __init__(self, *, low_priority_percent: float = 0) -> None:
        self._least_open = low_priority_percent / 100
        self._accounts = Accounts()
        self._last = 0
        self._credit = WorkCredit()
        self._pauses = PauseCredit()
        self._windows = LaunchWindows()
        self._turns: dict[str, int] = {}
        self._last_window: tuple[list[str], int, Fractions, Fractions, Fractions] | None = None

    def tick(
        self, now: int, tenants: Sequence[Tenant], refunded: Mapping[str, int] | None = None
    ) -> dict[str, Decision]:
        """The decisions from `now` (ns) on. `refunded` tells what a container that is new here was refunded before."""
        reports = _reports(tenants)
        believed = self._credit.believe(reports, now, SAMPLED if self._accounts.sampled else MEASURED)
        working = [
            report.is_there and _works(activity, now) for report, activity in zip(reports, believed, strict=True)
        ]
        tenants = [
            structs.replace(tenant, activity=activity) for tenant, activity in zip(tenants, believed, strict=True)
        ]
        found = self._got([tenant for tenant in tenants if tenant.activity.active], now)
        self._credit.charge({name: self._accounts.got(name, estimate) for name, estimate in found.items()})
        first = self._may_be_first(reports, tenants, working, now)
        self._last = now // layout.BIN_NS
        holders = [
            AccountHolder(
                tenant.name, tenant.share, tenant.activity.charged_ns, works, found.get(tenant.name), tenant.confirmed
            )
            for tenant, works in zip(tenants, working, strict=True)
        ]
        refunds = self._accounts.refunds(now, holders, refunded or {})
        used = [
            _used(self._accounts.got(tenant.name, found[tenant.name]), tenant.share) if tenant.name in found else 0.0
            for tenant in tenants
        ]
        lent = rates(tenants, working, used, now)
        higher = [_higher(tenant, tenants, first, working) for tenant in tenants]
        self._turns = {tenant.name: self._turns[tenant.name] for tenant in tenants if tenant.name in self._turns}
        launching = [works and not any(working[j] for j in above) for works, above in zip(working, higher, strict=True)]
        turns = [self._turn(tenants[i].name, bool(higher[i]) and working[i], found) for i in range(len(tenants))]
        windows = self._windows.tick(now, list(_launchers(tenants, launching, lent, refunds, now)))
        return {
            tenant.name: Decision(
                closed=any(tenants[j].signals for j in higher[i][layout.HEEDED :]),
                heeds=tuple(tenants[j].name for j in higher[i][: layout.HEEDED]),
                turns=turns[i],
                watched=watched,
                rate=lent[i],
                refund_ns=int(refunds[i].total),
                blocked_ns=int(refunds[i].blocked),
                window=windows.get(tenant.name, 0),
            )
            for i, (tenant, watched) in enumerate(zip(tenants, _watched(tenants), strict=True))
        }

    def _turn(self, name: str, waits: bool, found: Mapping[str, TimeEstimate]) -> int:
        """The present turn of a container. One that waits for others and got less than is left to it gets another."""
        got_lately = self._accounts.got(name, found[name]).sum() / WINDOW if name in found else 0.0
        if waits and got_lately < self._least_open:
            length_us = round(self._least_open * _TURN_US)
            self._turns[name] = ((self._turns.get(name, 0) >> 32) + 1) % (1 << 32) << 32 | length_us
        return self._turns.get(name, 0)

    def _may_be_first(
        self, reports: Sequence[ReportedWork], tenants: Sequence[Tenant], working: Sequence[bool], now: int
    ) -> list[bool]:
        """Whose work may come before that of lower priorities."""
        elapsed_ms = max(0, now // layout.BIN_NS - self._last) if self._last else 0
        lowest = max((each.priority for each, works in zip(tenants, working, strict=True) if works), default=0)
        workers = [
            Worker(
                each.name,
                each.signals,
                each.activity.asked_at,
                each.activity.waited_at,
                each.pause_ns,
                each.priority < lowest,
            )
            for each in tenants
        ]
        pauses = self._pauses.suffices(workers, now, elapsed_ms)
        return [
            self._credit.may_be_first(report, tenant.signals, elapsed_ms) and enough
            for report, tenant, enough in zip(reports, tenants, pauses, strict=True)
        ]

    def _got(self, tenants: Sequence[Tenant], now: int) -> dict[str, TimeEstimate]:
        """What each of those that had work got, what it was charged, and how much of that it got. Bins in which
        nothing changed since the last time are not computed again."""
        if not tenants:
            self._last_window = None
            return {}
        names = [tenant.name for tenant in tenants]
        brief = np.stack([tenant.activity.brief for tenant in tenants])
        worked = np.stack([_shown(tenant.activity) for tenant in tenants])
        if self._accounts.wrong:  # then factors say how time is divided, and brief work is not distinguished
            brief, worked = np.zeros_like(brief), brief + worked
        last, real, changed = now // layout.BIN_NS, np.zeros_like(brief), np.ones(WINDOW, bool)
        if (
            self._last_window is not None
            and self._last_window[0] == names
            and 0 <= (moved := last - self._last_window[1]) < WINDOW
        ):
            _, _, brief_before, worked_before, real_before = self._last_window
            kept = WINDOW - moved
            real[:, :kept] = real_before[:, moved:]
            same = (brief[:, :kept] == brief_before[:, moved:]) & (worked[:, :kept] == worked_before[:, moved:])
            changed[:kept] = ~same.all(axis=0)
        if changed.any():
            real[:, changed] = got(brief[:, changed], worked[:, changed])
        self._last_window = names, last, brief, worked, real
        reported = np.stack([tenant.activity.brief + tenant.activity.worked for tenant in tenants])
        return dict(zip(names, _estimates(brief + worked, reported, real), strict=True))


def _estimates(shown: Fractions, reported: Fractions, real: Fractions) -> Iterator[TimeEstimate]:
    """By container, from how much work of it there was, was done, and got time."""
    there = np.minimum(shown, 1)
    alone = np.minimum(there * [np.prod(1 - np.delete(there, i, axis=0), axis=0) for i in range(len(there))], real)
    done = np.minimum(reported / np.maximum(shown, 1e-9), 1)
    for i in range(len(shown)):
        yield TimeEstimate(there[i], np.minimum(reported[i], 1), alone[i], real[i] - alone[i], done[i])


def _reports(tenants: Sequence[Tenant]) -> list[ReportedWork]:
    """What belongs to a container without a limit is a part of what the limits of the others leave."""
    limited = [tenant.policy.by_time for tenant in tenants]
    left = max(0.0, 1 - sum(tenant.share for tenant, counts in zip(tenants, limited, strict=True) if counts))
    free = left / max(1, limited.count(False))
    return [
        ReportedWork(tenant.name, tenant.activity, tenant.confirmed, tenant.share if counts else free)
        for tenant, counts in zip(tenants, limited, strict=True)
    ]


def _higher(tenant: Tenant, tenants: Sequence[Tenant], first: Sequence[bool], working: Sequence[bool]) -> list[int]:
    """The numbers of those that come before the tenant, those at work first."""
    above = [j for j, other in enumerate(tenants) if other.priority < tenant.priority and first[j]]
    return sorted(above, key=lambda j: not working[j])


def _shown(activity: Activity) -> Fractions:
    """How much work there was, including work that is not finished and so not yet reported."""
    if not activity.busy:
        return activity.worked
    unfinished = activity.unfinished
    return np.maximum(activity.worked, unfinished - np.minimum(activity.brief, unfinished))


def _works(activity: Activity, now: int) -> bool:
    recent = RECENT_NS // layout.BIN_NS
    return (
        activity.busy
        or activity.asked_at + RECENT_NS > now
        or (activity.active and bool(activity.brief[-recent:].any() or activity.worked[-recent:].any()))
    )


def _launchers(
    tenants: Sequence[Tenant], launching: Sequence[bool], lent: Sequence[float], refunds: Sequence[Refund], now: int
) -> Iterator[Launcher]:
    """Those whose time is limited, and who may launch now."""
    for i, tenant in enumerate(tenants):
        if launching[i] and tenant.policy.by_time:
            yield Launcher(
                name=tenant.name,
                rate=lent[i],
                launch_ns=tenant.launch_ns if tenant.gpus == 1 else 0,
                occupied_ns=tenant.occupied_ns,
                work_ns=tenant.activity.charged_ns - int(refunds[i].total),
                waits=tenant.activity.waited_at + RECENT_NS > now,
            )


def _used(real: Fractions, share: float) -> float:
    """Of the GPU, lately; all of its share by who begins, until there is more to judge by."""
    if not real[:_BEGINNING].any():
        return share
    return max(float(real.sum()) / WINDOW, float(real[-20:].sum()) / 20)


def _watched(tenants: Sequence[Tenant]) -> list[bool]:
    """Whether another one has a limit, or priorities differ: then it matters who works, and that no long queue is left
    where a gate closes."""
    limited = sum(tenant.policy.by_time for tenant in tenants)
    ranked = len({tenant.priority for tenant in tenants}) > 1
    return [ranked or limited > (tenant.policy.by_time) for tenant in tenants]


def rates(tenants: Sequence[Tenant], working: Sequence[bool], used: Sequence[float], now: int) -> list[float]:
    """What each may use. Who waits for its share, or uses most of it, needs all of it; the others what they lately used
    and some more; the rest is lent to those that wait."""
    needs, hungry = [], []
    for i, tenant in enumerate(tenants):
        waits = tenant.activity.waited_at + HUNGRY_NS > now or used[i] > 0.9 * tenant.share
        limited = tenant.policy.by_time
        hungry.append(working[i] and waits and tenant.policy is ComputePolicy.WEIGHT)
        need = tenant.share if waits and limited else used[i] * _HEADROOM + _SPARE
        needs.append(0.0 if not working[i] else min(need, tenant.share) if limited else used[i])
    free = max(0.0, 1 - sum(needs))
    lent = _lent(free, {i: tenant for i, tenant in enumerate(tenants) if hungry[i]})
    return [tenant.share + lent.get(i, 0.0) for i, tenant in enumerate(tenants)]


def _lent(free: float, waiting: Mapping[int, Tenant]) -> dict[int, float]:
    """Idle time by shares. What one may not use goes to the others."""
    lent: dict[int, float] = {}
    waiting = dict(waiting)
    while waiting:
        shares = sum(tenant.share for tenant in waiting.values())
        parts = {i: free * tenant.share / shares for i, tenant in waiting.items()}
        full = {i: room for i, tenant in waiting.items() if (room := tenant.most - tenant.share) <= parts[i]}
        if not full:
            return lent | parts
        lent |= full
        free -= sum(full.values())
        waiting = {i: tenant for i, tenant in waiting.items() if i not in full}
    return lent
