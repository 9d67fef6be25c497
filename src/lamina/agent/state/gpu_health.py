"""Which GPUs exist and are healthy, from NVML's reports and their times.

A GPU becomes unhealthy when the driver reports a critical error (XID) for it that no application caused, when rows of
its memory could not be remapped, when too much of its memory is worn out, or when it stops answering. It becomes
healthy again when it answers and has had no such error for a while; a GPU that needs a reset keeps reporting errors or
stops answering. A lost GPU stays in the list, so that people see what is missing and why.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.configuration import DEFAULT
from lamina.core.config_fields import Health
from lamina.ports.nvml import GpuFacts, XidEvent

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109, 137})
"""XIDs that applications cause: exceptions in kernels, invalid addresses, stopped channels, timeouts."""


def is_critical(xid: int, rules: Health) -> bool:
    """Whether an error makes a GPU unhealthy."""
    if xid in rules.counted_xids:
        return True
    if rules.ignored_xids == "all" or xid in rules.ignored_xids:
        return False
    return xid in rules.only_xids if rules.only_xids else xid not in APPLICATION_XIDS


def worn_out_reason(facts: GpuFacts, rules: Health) -> str:
    """Why the GPU's memory is too worn to be used; empty if it is not."""
    for count, limit, what in (
        (facts.retired_pages, rules.max_retired_pages, "retired memory page"),
        (facts.sram_errors, rules.max_sram_errors, "uncorrectable SRAM error"),
    ):
        if count is not None and limit is not None and count > limit:
            return f"it has {count} {what}{'' if count == 1 else 's'}, more than the configured {limit}"
    return ""


class ObservedGpu(NamedTuple):
    """One GPU. `reason` says why it is unhealthy; empty while it is healthy."""

    facts: GpuFacts
    reason: str = ""
    xid: int = 0
    """The last XID that the driver reported, critical or not; 0 if there was none."""

    @property
    def healthy(self) -> bool:
        return not self.reason


class HealthTracker:
    """The node's GPUs and their recent errors. Times are seconds of one monotonic clock."""

    def __init__(self, rules: Health = DEFAULT.health, known: Iterable[GpuFacts] = ()) -> None:
        """`known` are GPUs from an earlier run; they count as lost until NVML lists them or replacements."""
        self._rules = rules
        self._facts = {facts.uuid: facts for facts in known}
        self._xids: dict[str, int] = {}
        self._lost: dict[str, str] = {}
        self._errors: dict[str, tuple[int, float]] = {}

    def record_listing(self, present: Iterable[GpuFacts], now: float) -> None:
        """NVML listed the GPUs `present`."""
        listed = {facts.uuid: facts for facts in present}
        if len(listed) >= len(self._facts):
            self._facts = {}  # a missing GPU was replaced by another one, not lost
        self._facts.update(listed)
        self._lost = {uuid: "the GPU does not answer NVML" for uuid in self._facts if uuid not in listed}
        self._errors = {
            uuid: (xid, when) for uuid, (xid, when) in self._errors.items() if now - when < self._rules.recovery_seconds
        }

    def record_outage(self, reason: str) -> None:
        """NVML itself does not answer."""
        self._lost = dict.fromkeys(self._facts, reason)

    def record_error(self, event: XidEvent, now: float) -> bool:
        """The driver reported an error. Returns whether it makes a GPU unhealthy."""
        affected = tuple(self._facts) if event.uuid not in self._facts else (event.uuid,)
        self._xids |= dict.fromkeys(affected, event.xid)
        if not is_critical(event.xid, self._rules):
            return False
        self._errors |= dict.fromkeys(affected, (event.xid, now))
        return True

    def gpus(self) -> tuple[ObservedGpu, ...]:
        """All known GPUs, by index."""
        ordered = sorted(self._facts.values(), key=lambda facts: (facts.index, facts.uuid))
        return tuple(ObservedGpu(facts, self._reason(facts), self._xids.get(facts.uuid, 0)) for facts in ordered)

    def _reason(self, facts: GpuFacts) -> str:
        uuid = facts.uuid
        if uuid in self._lost:
            return self._lost[uuid]
        if uuid in self._errors:
            return f"the driver reported XID {self._errors[uuid][0]}"
        if facts.remapping_failed:
            return "rows of its memory could not be remapped"
        return worn_out_reason(facts, self._rules)
