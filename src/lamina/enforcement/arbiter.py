"""Who may use how much of a GPU's time now, decided from what all of its containers do. Pure but for what it remembers.

Processes take turns on a GPU, so the time in which a container has work there is not the time that it gets. From how
long each had work in every millisecond follows what each got, when turns are equally long; the difference is refunded.
What containers of the policy `weight` leave is lent to those that wait. A container of higher priority that has work
closes the gates of the others.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.enforcement import layout
from lamina.enforcement.activity import WINDOW, Activity, Fractions
from lamina.model.grants import ComputePolicy

RECENT_NS = 50_000_000
"""A container works until it has done nothing for this long: a pause between two launches is none."""
HUNGRY_NS = 100_000_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_S, _W = (_NODES + 1) / 2, _WEIGHTS / 2
_SPARE, _HEADROOM = 0.05, 1.5
_CYCLE_MS = 1000


class Tenant(Struct, frozen=True, kw_only=True):
    """A container on the GPU. `share` is a fraction of the GPU's time; a smaller `priority` is higher."""

    name: str
    share: float
    policy: ComputePolicy
    priority: int
    activity: Activity


class Decision(Struct, frozen=True, kw_only=True):
    """What a container may do now. `rate` is what it may use with what is lent, as a fraction of the GPU's time."""

    closed: bool
    watched: bool
    rate: float
    refund_ns: int


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
    logs = whole * np.log(_S) + np.log(one)
    others = np.exp(logs.sum(axis=0) - logs)
    own = whole * _S ** np.maximum(whole - 1, 0) * one + part * _S**whole
    result: Fractions = alone + (own * others) @ _W * rest * (1 - alone)
    return result


class Arbiter:
    """Decides for the containers of one GPU; remembers what it refunded to each."""

    def __init__(self, *, low_priority_percent: float = 0) -> None:
        self._least_open = low_priority_percent / 100
        self._settled: dict[str, float] = {}
        self._open: dict[str, Fractions] = {}
        self._last = 0

    def tick(
        self, now: int, tenants: Sequence[Tenant], refunded: Mapping[str, int] | None = None
    ) -> dict[str, Decision]:
        """The decisions from `now` (ns) on. `refunded` tells what a container that is new here was refunded before."""
        for tenant in tenants:
            self._settled.setdefault(tenant.name, float((refunded or {}).get(tenant.name, 0)))
        if not tenants:
            return {}
        brief = np.stack([tenant.activity.brief for tenant in tenants])
        worked = np.stack([_shown(tenant.activity, now) for tenant in tenants])
        real = got(brief, worked)
        refunds = self._refunds(now // layout.BIN_NS, tenants, real / np.maximum(brief + worked, 1e-9))
        working = [_works(tenant.activity, now) for tenant in tenants]
        lent = rates(tenants, working, real, now)
        highest = min((t.priority for t, works in zip(tenants, working, strict=True) if works), default=0)
        forced = now // layout.BIN_NS % _CYCLE_MS < self._least_open * _CYCLE_MS
        return {
            tenant.name: Decision(
                closed=any(working) and tenant.priority > highest and not forced,
                watched=_watched(tenant, tenants),
                rate=lent[i],
                refund_ns=int(refunds[i]),
            )
            for i, tenant in enumerate(tenants)
        }

    def _refunds(self, last: int, tenants: Sequence[Tenant], part: Fractions) -> list[float]:
        """In ns, ever; `part` of what a container worked it got. What processes told late changes a refund as long as
        its bin is in the window."""
        moved = min(last - self._last, WINDOW) if self._last else WINDOW
        self._last = last
        totals = []
        for i, tenant in enumerate(tenants):
            worked = tenant.activity.brief + tenant.activity.worked
            refund = np.maximum(np.minimum(worked, 1) - worked * part[i], 0) * layout.BIN_NS
            before = self._open.get(tenant.name)
            if before is not None and moved > 0:
                self._settled[tenant.name] += float(before[:moved].sum())
            self._open[tenant.name] = refund
            totals.append(self._settled[tenant.name] + float(refund.sum()))
        for name in self._settled.keys() - {tenant.name for tenant in tenants}:
            del self._settled[name]
            self._open.pop(name, None)
        return totals


def _shown(activity: Activity, now: int) -> Fractions:
    """How much work there was, with that which is not finished and so not yet told."""
    if not activity.busy_since:
        return activity.worked
    last = now // layout.BIN_NS
    unfinished = np.zeros(WINDOW)
    for since in activity.busy_since:
        unfinished[max(0, WINDOW - 1 - (last - since // layout.BIN_NS)) :] += 1
    return np.maximum(activity.worked, unfinished - np.minimum(activity.brief, unfinished))


def _works(activity: Activity, now: int) -> bool:
    recent = RECENT_NS // layout.BIN_NS
    return bool(
        activity.busy_since or activity.asked_at + RECENT_NS > now or (activity.brief + activity.worked)[-recent:].any()
    )


def _watched(tenant: Tenant, tenants: Sequence[Tenant]) -> bool:
    return any(
        other.name != tenant.name and (other.policy is not ComputePolicy.NONE or other.priority > tenant.priority)
        for other in tenants
    )


def rates(tenants: Sequence[Tenant], working: Sequence[bool], real: NDArray[np.float64], now: int) -> list[float]:
    """What each may use. Who waits for its share, or uses most of it, needs all of it; the others what they lately used
    and some more; the rest is lent to those that wait, by their shares."""
    needs, hungry = [], []
    for i, tenant in enumerate(tenants):
        used = max(float(real[i].mean()), float(real[i][-20:].mean()))
        waits = tenant.activity.waited_at + HUNGRY_NS > now or used > 0.9 * tenant.share
        limited = tenant.policy is not ComputePolicy.NONE
        hungry.append(working[i] and waits and tenant.policy is ComputePolicy.WEIGHT)
        need = tenant.share if waits and limited else used * _HEADROOM + _SPARE
        needs.append(0.0 if not working[i] else min(need, tenant.share) if limited else used)
    free = max(0.0, 1 - sum(needs))
    shares = sum(tenant.share for tenant, eager in zip(tenants, hungry, strict=True) if eager)
    return [
        min(1.0, tenant.share + free * tenant.share / shares) if eager else tenant.share
        for tenant, eager in zip(tenants, hungry, strict=True)
    ]
