"""Which GPUs are there and healthy, from what NVML told and when.

A GPU becomes unhealthy when the driver reports a critical error (XID) for it that is not an application's own fault,
when rows of its memory could not be remapped or too much of it is worn, or when it stops answering. It becomes healthy
again when it answers and has been free of such errors for a while; a GPU that needs a reset keeps reporting or stops
answering. A GPU that is lost stays known, so that people see what is missing and why.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.dialects.sections import Health
from lamina.ports.nvml import GpuFacts, XidEvent

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109, 137})
"""Errors that a program causes: exceptions in kernels, faulty addresses, stopped channels, its own timeouts."""


def counts(xid: int, rules: Health) -> bool:
    """Whether an error makes a GPU unhealthy."""
    if xid in rules.enable:
        return True
    if isinstance(rules.disable, str) or xid in rules.disable:
        return False
    return xid in rules.only if rules.only else xid not in APPLICATION_XIDS


def worn(facts: GpuFacts, rules: Health) -> str:
    """Why the GPU's memory is too worn to be used, or nothing."""
    for found, most, what in (
        (facts.retired_pages, rules.retired_pages, "retired pages of memory"),
        (facts.sram_errors, rules.sram_errors, "errors of SRAM that could not be corrected"),
    ):
        if found is not None and most is not None and found > most:
            return f"it has {found} {what}; {most} are allowed"
    return ""


class GpuState(NamedTuple):
    """One GPU; `reason` is empty while it is healthy."""

    facts: GpuFacts
    reason: str = ""
    xid: int = 0
    """The last error that the driver reported, whether or not it counts; 0 is none."""

    @property
    def healthy(self) -> bool:
        return not self.reason


class HealthBook:
    """What is known of the node's GPUs. Moments are seconds of any one monotonic clock."""

    def __init__(self, rules: Health = Health(), known: Iterable[GpuFacts] = ()) -> None:  # noqa: B008
        """`known` are GPUs that were there before; NVML has to list them, or others in their place."""
        self._rules = rules
        self._facts = {facts.uuid: facts for facts in known}
        self._xids: dict[str, int] = {}
        self._lost: dict[str, str] = {}
        self._struck: dict[str, tuple[int, float]] = {}

    def answered(self, present: Iterable[GpuFacts], now: float) -> None:
        """NVML listed the GPUs `present`."""
        listed = {facts.uuid: facts for facts in present}
        if len(listed) >= len(self._facts):
            self._facts = {}  # a missing GPU was replaced by another one, not lost
        self._facts.update(listed)
        self._lost = {uuid: "the GPU does not answer NVML" for uuid in self._facts if uuid not in listed}
        self._struck = {
            u: (xid, when) for u, (xid, when) in self._struck.items() if now - when < self._rules.quiet_seconds
        }

    def silent(self, reason: str) -> None:
        """NVML itself does not answer."""
        self._lost = dict.fromkeys(self._facts, reason)

    def struck(self, event: XidEvent, now: float) -> bool:
        """The driver reported an error. Whether it makes a GPU unhealthy."""
        struck = tuple(self._facts) if event.uuid not in self._facts else (event.uuid,)
        self._xids |= dict.fromkeys(struck, event.xid)
        if not counts(event.xid, self._rules):
            return False
        self._struck |= dict.fromkeys(struck, (event.xid, now))
        return True

    def states(self) -> tuple[GpuState, ...]:
        """Every GPU known, by index."""
        ordered = sorted(self._facts.values(), key=lambda facts: (facts.index, facts.uuid))
        return tuple(GpuState(facts, self._reason(facts), self._xids.get(facts.uuid, 0)) for facts in ordered)

    def _reason(self, facts: GpuFacts) -> str:
        uuid = facts.uuid
        if uuid in self._lost:
            return self._lost[uuid]
        if uuid in self._struck:
            return f"the driver reported XID {self._struck[uuid][0]}"
        if facts.remapping_failed:
            return "rows of its memory could not be remapped"
        return worn(facts, self._rules)
