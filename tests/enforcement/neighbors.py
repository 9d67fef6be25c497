"""A container with a share of a GPU's time next to one that may lie, in ms steps, without a clock or a driver."""

import ctypes
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.activity import Activity, Reading, activities
from lamina.enforcement.arbiter import Arbiter, Decision, Tenant
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.usage_arrays import head_bytes
from tests.enforcement import bucket

MS = layout.BIN_NS
BEGIN = (1 << 40) * 1000
SETTLED_MS, MEASURED_MS = 8_000, 6_000
END_MS = SETTLED_MS + MEASURED_MS
TICK_MS, ASKED_MS, AVERAGED_MS = 10, 500, 1000
"""How often the arbiter decides and the driver is asked, and over what the driver averages."""


@dataclass
class Words:
    """What a container's processes write into `usage`; `bins` has brief and other us by ms."""

    bins: dict[int, tuple[int, int]] = field(default_factory=dict)
    busy_since: int = 0
    asked_at: int = 0
    waited_at: int = 0
    processes: int = 1
    signals: bool = False
    """Whether it signals work."""
    own: dict[str, int] = field(default_factory=dict)
    """Words that only the facade of the container reads, such as `due`."""

    def activity(self, now: int) -> Activity:
        file, word = layout.UsageFile(slots_used=self.processes), layout.SlotDevice()
        for number in range(now // MS - layout.BINS + 2, now // MS + 1):
            if number in self.bins:
                brief, other = self.bins[number]
                value = number << layout.BIN_SHIFT | brief << layout.BRIEF_SHIFT | other
                file.devices[0].compute.bins[number % layout.BINS] = value
        for name, number in self.own.items():
            setattr(file.devices[0].compute, name, number)
        for name in ("busy_since", "asked_at", "waited_at"):
            setattr(word.compute, name, getattr(self, name))
        slot = bytes(ctypes.sizeof(layout.Slot)) + bytes(word)
        ((found,),) = activities([Reading(bytes(file)[: head_bytes(1)], slot * min(self.processes, 128))], 1, now)
        return found


Lie = Callable[[Words, int], None]
"""Changes the words of the container that lies, each time before the arbiter reads them."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """What the driver says. Without `measures` it does not know the work of processes."""

    processes: int = 1
    """How many it lists of each container."""
    measures: bool = True
    trusted: bool = False
    """Containers are taken at their word."""

    def confirms(self, work: float, asked_at: int) -> Confirmation | None:
        return None if self.trusted else Confirmation(self.processes, work if self.measures else None, asked_at)


class Neighbor:
    """It works whenever its share allows. Its kernels take 1 ms, or 2 ms while the other container works."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant, self.words = tenant, Words()
        self.got_ms = 0.0
        self._due, self._refunded = 0, 0
        self._decision = Decision(closed=False, watched=False, rate=tenant.share, refund_ns=0)

    def decide(self, decision: Decision) -> None:
        self._decision = decision

    def is_ready(self, now: int, *, signaled: bool = False) -> bool:
        """Whether its share lets it work now, and no signal that it heeds."""
        heeds = signaled and bool(self._decision.heeds)
        return not heeds and not self._decision.closed and self._due <= now

    def work(self, now: int, others: int, *, signaled: bool = False) -> float:
        """What it gets of a ms. `signaled`: the other container signals work."""
        rate = round(self._decision.rate * bucket.WHOLE_PPM)
        given, self._refunded = self._decision.refund_ns - self._refunded, self._decision.refund_ns
        blocked = self._decision.blocked_ns
        self._due = bucket.charge(self._due, now, -given, rate, blocked)
        if not self.is_ready(now, signaled=signaled):
            return 0.0
        self._due = bucket.charge(self._due, now, MS, rate, blocked)
        self.words.bins[now // MS] = (0, 1000)
        self.words.own["busy_ns"] = self.words.own.get("busy_ns", 0) + MS
        self.words.asked_at = self.words.waited_at = now
        self.got_ms += 1 / (1 + others)
        return 1 / (1 + others)


def with_activity(neighbor: Neighbor, now: int, confirmed: Confirmation | None) -> Tenant:
    """The tenant as the arbiter sees it now."""
    return structs.replace(neighbor.tenant, activity=neighbor.words.activity(now), confirmed=confirmed)


def share_next_to(
    tenant: Tenant,
    other: Tenant,
    lie: Lie,
    *,
    driver: Driver,
    works: Callable[[int], bool] = lambda ms: False,
    settled_ms: int = SETTLED_MS,
) -> float:
    """Percent of the GPU's time that `tenant` gets from `settled_ms` on, while `other` lies. `works` says in which ms
    the other really works."""
    arbiter, neighbor, words = Arbiter(), Neighbor(tenant), Words()
    done: dict[str, deque[float]] = {name: deque([0.0] * AVERAGED_MS, AVERAGED_MS) for name in ("it", "other")}
    said: dict[str, float] = {}
    tenants: dict[str, Tenant] = {}
    before, asked_at = 0.0, 0
    for ms in range(settled_ms + MEASURED_MS):
        now = BEGIN + ms * MS
        if ms == settled_ms:
            before = neighbor.got_ms
        if ms % ASKED_MS == 0:
            asked_at = now
            said = {name: sum(parts) / AVERAGED_MS for name, parts in done.items()}
        if ms % TICK_MS == 0:
            lie(words, now)
            for each, own, what in ((tenant, neighbor.words, "it"), (other, words, "other")):
                tenants[what] = structs.replace(
                    each,
                    activity=own.activity(now),
                    signals=own.signals or (what == "other" and works(ms)),
                    confirmed=driver.confirms(said[what], asked_at),
                )
            neighbor.decide(arbiter.tick(now, list(tenants.values()))[tenant.name])
        busy = works(ms)
        got = neighbor.work(now, int(busy), signaled=words.signals or busy)
        done["it"].append(got)
        done["other"].append((1 - got) if busy else 0.0)
    return 100 * (neighbor.got_ms - before) / MEASURED_MS


def tenant(name: str, share: float, *, policy: str = "cap", priority: int = 1) -> Tenant:
    return Tenant(name=name, share=share, policy=ComputePolicy(policy), priority=priority, activity=Activity())
