"""Read at one moment what the node's containers hold: from the record, their folders, and NVML.

A container is told of from the moment it is prepared until it is released: one that never used its GPU is there with
zeros. Usage files are the tenants' own; one that cannot be read counts as one that says nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.health import GpuState
from lamina.agent.metrics.samples import Enforcer, PartSample, ShareSample
from lamina.agent.plan import LIMITS, USAGE, Places, folder_name
from lamina.agent.record import Allocation, Bound
from lamina.enforcement import DeviceLimit, Usage, read_limits, read_usage
from lamina.enforcement.layout import KINDS
from lamina.errors import LaminaError
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
    *,
    readings: Mapping[str, GpuReading],
    parts: Mapping[str, PartSample],
    shared: Mapping[str, Mapping[str, int] | None],
    driver_held: Sequence[str],
    rates: Rates,
    now: float,
) -> list[ShareSample]:
    """A sample for each GPU of each container that was prepared. `now` is of a monotonic clock, in seconds.

    `parts` are the MIG devices by UUID; `shared` are the GPUs and MIG devices that `sharers` found, with the bytes of
    each pod.
    """
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
            found += (
                _undivided(bound, place, uuid, readings.get(uuid, GpuReading()), parts.get(uuid), shared)
                for place, uuid in enumerate(_seen(bound, parts))
            )
    rates.keep(told)
    return found


def parts(gpus: Iterable[GpuState], readings: Mapping[str, GpuReading]) -> dict[str, PartSample]:
    """The MIG devices of the GPUs, by UUID."""
    return {
        each.uuid: PartSample(state, each, readings.get(each.uuid, GpuReading()))
        for state in gpus
        for each in state.facts.instances
        if each.uuid
    }


def _seen(bound: Bound, parts: Mapping[str, PartSample]) -> list[str]:
    """The GPUs and MIG devices that a container has, by UUID. Instances made for it are known by their places."""
    if not bound.instances:
        return list(bound.gpus)
    at = {(part.gpu.facts.uuid, part.instance.profile, part.instance.start): uuid for uuid, part in parts.items()}
    places = [(each.gpu, each.profile, each.start) for each in bound.instances]
    return [at[place] for place in places if place in at]


def policy(gpu: str, shares: Iterable[ShareSample]) -> int:
    """CCE's word for how containers share a GPU: 0 by memory alone, 1 by memory and compute, 2 not at all."""
    here = [each for each in shares if each.gpu == gpu and each.enforcer in ("facade", "driver")]
    return 2 if not here else int(any(each.cores_percent for each in here))


def sharers(allocations: Iterable[Allocation]) -> Mapping[str, Sequence[str]]:
    """The GPUs and MIG devices that several containers have without a part of their own, by UUID: the pods' UIDs.

    A pod with several such containers on one of them stands there as often.
    """
    holders: dict[str, dict[str, str]] = {}
    for allocation in allocations:
        if (bound := allocation.bound) is not None and any("::" in device for device in allocation.tickets):
            for uuid in bound.gpus:
                holders.setdefault(uuid, {})[f"{bound.pod_uid}/{bound.container}"] = bound.pod_uid
    return {uuid: tuple(each.values()) for uuid, each in holders.items()}


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


def _undivided(
    bound: Bound,
    place: int,
    uuid: str,
    reading: GpuReading,
    part: PartSample | None,
    shared: Mapping[str, Mapping[str, int] | None],
) -> ShareSample:
    """A container with a GPU or MIG device of its own, or one of several on it: what is used of it is theirs."""
    total = (reading.used_bytes or 0) + (reading.free_bytes or 0)
    own = uuid not in shared
    used = reading.used_bytes or 0 if own else (shared[uuid] or {}).get(bound.pod_uid)
    return ShareSample(
        namespace=bound.namespace,
        pod=bound.pod,
        container=bound.container,
        gpu=uuid,
        place=place,
        enforcer="mig" if part is not None and own else "whole" if own else "none",
        limit=total,
        cores_percent=None if part is not None else 100 if own else 0,
        held={} if used is None else {"data": used},
        busy_s=0.0 if own and part is None else None,
        waited_s=0.0 if own and part is None else None,
        busy_percent=float(reading.busy_percent) if own and reading.busy_percent is not None else None,
        part=part,
    )


def _usage(path: Path) -> Usage | None:
    try:
        return read_usage(path)
    except LaminaError:
        return None
