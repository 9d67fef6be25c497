"""Read at one moment what the node's containers hold: from the record, their folders, and NVML.

A container is told of from the moment its folder or CDI spec is made until it is released: one that never used its GPU
is there with zeros. Usage files are the tenants' own; one that cannot be read counts as one that says nothing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent import cdi
from lamina.agent.metrics.samples import Enforcer, Part, ShareSample
from lamina.agent.plan import LIMITS, USAGE, Places, folder_name
from lamina.agent.record import Allocation, Bound
from lamina.enforcement import DeviceLimit, Usage, read_limits, read_usage
from lamina.enforcement.layout import KINDS
from lamina.errors import LaminaError
from lamina.ports.files import Files
from lamina.ports.nvml import GpuReading

LEAST_S = 1.0
"""The shortest time over which GPU time is averaged."""
_NS = 1e9


class _Moment(NamedTuple):
    at: float
    busy_s: float


class Rates:
    """GPU time over the last seconds, from counters that are looked at whenever somebody asks."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[_Moment, _Moment]] = {}

    def percent(self, holder: tuple[str, str], busy_s: float, now: float) -> float:
        """Percent of one GPU's time since the last look that is LEAST_S back or more; 0 at the first look.

        `holder` is a container's name and a UUID.
        """
        present = _Moment(now, busy_s)
        older, newer = self._seen.get(holder, (present, present))
        if now - newer.at >= LEAST_S:
            older, newer = newer, present
        self._seen[holder] = older, newer
        passed = now - older.at
        return max(0.0, min(100.0, 100 * (busy_s - older.busy_s) / passed)) if passed >= LEAST_S else 0.0

    def keep(self, containers: set[str]) -> None:
        """Forget all others."""
        self._seen = {holder: seen for holder, seen in self._seen.items() if holder[0] in containers}


def shares(
    allocations: Sequence[Allocation],
    places: Places,
    files: Files,
    *,
    readings: Mapping[str, GpuReading],
    parts: Mapping[str, Part],
    driver_held: Sequence[str],
    rates: Rates,
    now: float,
) -> list[ShareSample]:
    """A sample for each GPU of each container that was prepared. `parts` are the MIG devices by their UUIDs, `now` is
    of a monotonic clock, in seconds."""
    found: list[ShareSample] = []
    told: set[str] = set()
    for allocation in allocations:
        bound = allocation.bound
        if bound is None or (name := f"{bound.pod_uid}/{bound.container}") in told:
            continue
        told.add(name)
        folder = places.containers / folder_name(bound.pod_uid, bound.container)
        if (folder / LIMITS).is_file():
            enforcer: Enforcer = "driver" if name in driver_held else "facade"
            try:
                limits = read_limits(folder / LIMITS)
            except LaminaError:
                continue  # half-written or being removed
            usage = _usage(folder / USAGE)
            for place, limit in enumerate(limits.devices):
                found.append(_share(bound, place, limit, usage, enforcer, rates, now))
        else:
            spec = files.read(places.cdi / cdi.file_name(allocation.name))
            visible = cdi.visible(spec) if spec else ()
            for place, uuid in enumerate(visible):
                found.append(_whole(bound, place, uuid, readings.get(uuid, GpuReading()), parts.get(uuid)))
    rates.keep(told)
    return found


def _share(
    bound: Bound, place: int, limit: DeviceLimit, usage: Usage | None, enforcer: Enforcer, rates: Rates, now: float
) -> ShareSample:
    device = next((one for one in usage.devices if one.uuid == limit.uuid), None) if usage else None
    held = dict.fromkeys(KINDS, 0) | {"foreign": 0 if device is None else device.orphaned}
    for process in usage.processes if usage else ():
        for kind, size in process.held.get(limit.uuid, {}).items():
            held[kind] += size
    busy_s = 0.0 if device is None else device.busy_ns / _NS
    return ShareSample(
        namespace=bound.namespace,
        pod=bound.pod,
        container=bound.container,
        gpu=limit.uuid,
        place=place,
        enforcer=enforcer,
        limit=limit.memory_bytes,
        cores_percent=limit.cores_percent,
        held=held,
        spilled=device.spilled if device else 0,
        peak=device.peak if device else 0,
        refusals=device.refusals if device else 0,
        busy_s=busy_s,
        waited_s=device.waited_ns / _NS if device else 0.0,
        busy_percent=rates.percent((f"{bound.pod_uid}/{bound.container}", limit.uuid), busy_s, now),
    )


def _whole(bound: Bound, place: int, uuid: str, reading: GpuReading, part: Part | None) -> ShareSample:
    """A container with a GPU or a MIG device of its own: whatever is used of it is the container's."""
    used = reading.used_bytes or 0
    return ShareSample(
        namespace=bound.namespace,
        pod=bound.pod,
        container=bound.container,
        gpu=uuid,
        place=place,
        enforcer="mig" if part else "whole",
        limit=used + (reading.free_bytes or 0),
        part=part,
        cores_percent=None if part else 100,
        held={"data": used},
        busy_s=None if part else 0.0,
        waited_s=None if part else 0.0,
        busy_percent=None if part else float(reading.busy_percent or 0),
    )


def _usage(path: Path) -> Usage | None:
    try:
        return read_usage(path)
    except LaminaError:
        return None
