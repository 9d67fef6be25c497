"""The accounts of one node: what each workload held and used of its GPUs. Pure.

Every figure is a sum of parts of a GPU multiplied by seconds. The requested parts of a GPU and its idle part are always
one GPU together: where more is granted than a GPU has, the parts shrink in proportion. A pod that requests no compute
counts with its part of the memory. Time between two observations counts up to `MAX_PASSED_S`.

A workload that is gone for `KEPT_S` is folded: its account is added to the past of its namespace. With more than
`MAX_ACCOUNTS`, those that are gone longest are folded first, and then those of the namespace that has most, until each
has its part. A workload that finds no room counts for its namespace. Likewise namespaces give way to one account
without a name. So what tenants create takes a bounded space.

What a pod holds counts a second time for the value of each label that the configuration names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from lamina.agent.chargeback.amounts import NO_AMOUNTS, AccountedGpu, Amounts, UsageSample, fitting, memory_parts
from lamina.core.evictions import MAX_IDLE, IdlePod, IdleShares
from lamina.core.workloads import UNKNOWN, Workload

MAX_PASSED_S = 60.0
MAX_DRIFT_S = 60.0
"""A wall clock that is further from the time that passed was set, so no pod was idle meanwhile."""
KEPT_S = 86400.0
MAX_ACCOUNTS = 512
MAX_NAMESPACES = 256
PARTS = 4
"""A namespace has room for this part of the accounts. Tenants choose how many owners their pods have."""
_GIB = 1 << 30


class AccountKey(NamedTuple):
    """Whose account it is. `kind` and `workload` are empty for the rest of a namespace, and `namespace` for the rest
    of the node. Where `label` is given, the account is of the pods with `workload` as the value of that label."""

    namespace: str
    kind: str
    workload: str
    model: str
    label: str = ""

    @property
    def of_namespace(self) -> "AccountKey":
        return AccountKey(self.namespace, "", "", self.model, self.label)

    @property
    def of_node(self) -> "AccountKey":
        return AccountKey("", "", "", self.model, self.label)


class Account(Struct, frozen=True, array_like=True):
    """`seen_at` is when it last grew, in seconds since 1970."""

    key: AccountKey
    amounts: Amounts
    seen_at: float


class GpuTime(Struct, frozen=True, kw_only=True):
    """GPUs of one model, in seconds: that they were there, and that they were not requested."""

    capacity: float = 0.0
    idle_memory: float = 0.0
    idle_compute: float = 0.0

    def plus(self, other: "GpuTime") -> "GpuTime":
        return GpuTime(
            capacity=self.capacity + other.capacity,
            idle_memory=self.idle_memory + other.idle_memory,
            idle_compute=self.idle_compute + other.idle_compute,
        )


class BusyCounter(Struct, frozen=True, array_like=True):
    """GPU time of a container on a GPU as it was read last, in seconds, or its mark where time is not measured. The
    container is empty for a whole GPU.

    `changed_at` is when it grew last, or was read first, in seconds since 1970.
    """

    pod_uid: str
    container: str
    gpu: str
    busy_s: float
    changed_at: float = 0.0

    def moved(self, seconds: float) -> "BusyCounter":
        """After the clock was set by so much."""
        return structs.replace(self, changed_at=self.changed_at + seconds)


_BusyCounters = dict[tuple[str, str, str], BusyCounter]
"""By UID of the pod, container and GPU."""


class BookState(Struct, frozen=True, kw_only=True, rename="camel"):
    """All that a book knows. `at` is when it was written, in seconds since 1970."""

    at: float = 0.0
    accounts: tuple[Account, ...] = ()
    past: tuple[Account, ...] = ()
    """What was folded, by namespace."""
    gpus: dict[str, GpuTime] = {}
    """By model."""
    busy: tuple[BusyCounter, ...] = ()
    workloads: dict[str, Workload] = {}
    """The workload of each pod that held something, by UID."""


EMPTY = BookState()


class AccountBook:
    """`state` is what it knows after the last call; an earlier state can be kept, because it does not change."""

    def __init__(self, state: BookState = EMPTY, *, most: int = MAX_ACCOUNTS, namespaces: int = MAX_NAMESPACES) -> None:
        self._open = {account.key: account for account in state.accounts}
        self._past = {account.key: account for account in state.past}
        self._gpus = dict(state.gpus)
        self._busy = {(each.pod_uid, each.container, each.gpu): each for each in state.busy}
        self._workloads = dict(state.workloads)
        self._most = most
        self._namespaces = namespaces
        self._at = self._before = state.at
        """When it observed last, and before that: what was seen at neither is gone."""

    @property
    def state(self) -> BookState:
        return BookState(
            at=self._at,
            accounts=tuple(self._open.values()),
            past=tuple(self._past.values()),
            gpus=dict(self._gpus),
            busy=tuple(self._busy.values()),
            workloads=dict(self._workloads),
        )

    def observe(
        self, gpus: Mapping[str, AccountedGpu], samples: Sequence[UsageSample], *, passed_s: float, now: float
    ) -> None:
        """`samples` are what pods had of the node's GPUs for the last `passed_s` seconds; `now` is since 1970."""
        passed = min(max(passed_s, 0.0), MAX_PASSED_S)
        drift = now - self._at - passed_s if self._at else 0.0
        if abs(drift) > MAX_DRIFT_S:
            self._busy = {key: each.moved(drift) for key, each in self._busy.items()}
        self._before, self._at = self._at, now
        busy: _BusyCounters = {}
        for uuid, gpu in gpus.items():
            on_gpu = [sample for sample in samples if sample.gpu == uuid]
            idle = self._observe_gpu(gpu, on_gpu, passed, busy)
            self._gpus[gpu.model] = self._gpus.get(gpu.model, GpuTime()).plus(idle)
        self._busy = busy
        self._workloads = {each.pod_uid: self._workload(each) for each in samples}
        self._fold_gone()

    def _observe_gpu(
        self,
        gpu: AccountedGpu,
        on_gpu: Sequence[UsageSample],
        passed: float,
        busy: _BusyCounters,
    ) -> GpuTime:
        memory = memory_parts([each.memory_bytes for each in on_gpu], gpu)
        asked = [each.cores / 100 or part for each, part in zip(on_gpu, memory, strict=True)]
        compute = fitting(asked)
        known = [bool(gpu.memory_bytes) and each.used_bytes is not None for each in on_gpu]
        held = memory_parts([each.used_bytes or 0 for each in on_gpu], gpu)
        worked = [self._worked(each, passed, busy) for each in on_gpu]
        used = fitting([part or 0.0 for part in worked])
        for place, sample in enumerate(on_gpu):
            of_compute = _figures(compute[place], None if worked[place] is None else used[place])
            if worked[place] is not None:
                of_compute["lent"] = max(0.0, compute[place] - used[place])
            of_memory = _figures(memory[place], held[place] if known[place] else None)
            parts = {f"memory_{name}": part for name, part in of_memory.items()}
            parts |= {f"compute_{name}": part for name, part in of_compute.items()}
            gib = gpu.memory_bytes / _GIB
            parts |= {f"gib_{name}": part * gib for name, part in of_memory.items() if name != "observed"}
            self._add(sample, gpu.model, Amounts(**{name: part * passed for name, part in parts.items()}))
        return GpuTime(
            capacity=passed,
            idle_memory=passed * max(0.0, 1 - sum(memory)),
            idle_compute=passed * max(0.0, 1 - sum(compute)),
        )

    def _worked(self, sample: UsageSample, passed: float, busy: _BusyCounters) -> float | None:
        """The part of the time in which the pod used the GPU; None where it is not known. Remembers the counters."""
        counters = sample.busy_s
        if counters is None:
            if sample.busy_percent is None:
                self._grown(sample, sample.marks or {}, busy)
                return None
            known = self._busy.get((sample.pod_uid, "", sample.gpu))
            counters = {"": (known.busy_s if known else 0.0) + sample.busy_percent / 100 * passed}
        grown = self._grown(sample, counters, busy)
        return grown / passed if passed else 0.0

    def _grown(self, sample: UsageSample, counters: Mapping[str, float], busy: _BusyCounters) -> float:
        """By how much the counters have grown since the last look. Remembers them."""
        grown = 0.0
        for container, counter in counters.items():
            holder = sample.pod_uid, container, sample.gpu
            before = self._busy.get(holder) or BusyCounter(*holder, 0.0, self._at)
            more = counter - before.busy_s if counter >= before.busy_s else counter  # one that started again is at 0
            busy[holder] = BusyCounter(*holder, counter, self._at if more > 0 else before.changed_at)
            grown += more
        return grown

    def _add(self, sample: UsageSample, model: str, amounts: Amounts) -> None:
        of = self._workload(sample)
        keys = [AccountKey(sample.namespace, of.kind, of.name, model)]
        keys += [AccountKey(sample.namespace, "", value, model, label) for label, value in sample.labels.items()]
        for account in map(self._account, keys):
            self._open[account.key] = Account(account.key, account.amounts.plus(amounts), self._at)

    def _workload(self, sample: UsageSample) -> Workload:
        """What was known before counts until Kubernetes has listed the pods."""
        return self._workloads.get(sample.pod_uid, UNKNOWN) if sample.workload == UNKNOWN else sample.workload

    def _account(self, key: AccountKey) -> Account:
        """The account, opened where there is room, or that of the rest."""
        for each, room in ((key, self._most), (key.of_namespace, self._most + self._namespaces)):
            if each in self._open:
                return self._open[each]
            while len(self._open) >= room and (
                self._fold_gone_longest() or (each is key and self._fold_of_largest(key.namespace))
            ):
                pass
            if len(self._open) < room:
                return Account(each, NO_AMOUNTS, self._at)
        return self._open.get(key.of_node) or Account(key.of_node, NO_AMOUNTS, self._at)

    def _fold_gone(self) -> None:
        for account in [each for each in self._open.values() if self._at - each.seen_at > KEPT_S]:
            self._fold(account)

    def _fold_gone_longest(self) -> bool:
        """Fold the account that is gone longest. Returns whether one is gone."""
        gone = min(self._open.values(), key=lambda account: account.seen_at, default=None)
        if gone is None or gone.seen_at >= min(self._before, self._at):
            return False
        self._fold(gone)
        return True

    def _fold_of_largest(self, namespace: str) -> bool:
        """Fold the newest account of the namespace with most of them. False where `namespace` has its part already."""
        counts, part = Counter(key.namespace for key in self._open if key.workload), max(1, self._most // PARTS)
        [(largest, most)] = counts.most_common(1) or [("", 0)]
        if not counts[namespace] < part < most:
            return False
        newest = next(key for key in reversed(self._open) if key.workload and key.namespace == largest)
        self._fold(self._open[newest])
        return True

    def _fold(self, account: Account) -> None:
        del self._open[account.key]
        key = account.key.of_namespace
        if key not in self._past and len(self._past) >= self._namespaces:
            key = key.of_node
        before = self._past.get(key, Account(key, NO_AMOUNTS, account.seen_at))
        self._past[key] = Account(key, before.amounts.plus(account.amounts), account.seen_at)


def _figures(requested: float, used: float | None) -> dict[str, float]:
    """What a pod has of a GPU; `used` is None where that is not known."""
    if used is None:
        return {"requested": requested}
    return {
        "requested": requested,
        "observed": requested,
        "used": used,
        "borrowed": max(0.0, used - requested),
    }


_HOUR_S = 3600.0


def idle_pods(counters: Iterable[BusyCounter], policy: IdleShares, now: float) -> tuple[IdlePod, ...]:
    """Of those whose use is known, the longest idle first. `now` is since 1970."""
    if not policy.hours:
        return ()
    used: dict[str, float] = {}
    for counter in counters:
        used[counter.pod_uid] = max(used.get(counter.pod_uid, 0.0), counter.changed_at)
    idle = [IdlePod(pod_uid=uid, since=int(at)) for uid, at in used.items() if now - at >= policy.hours * _HOUR_S]
    return tuple(sorted(idle, key=lambda pod: (pod.since, pod.pod_uid))[:MAX_IDLE])
