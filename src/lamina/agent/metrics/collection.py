"""Collects what the node's GPUs, MIG devices and containers use at one moment: from NVML, the record, and directories.

A container has samples from the moment it is prepared until it is released; one that never used its GPU has
zeros. Usage files are the tenants' own; one that cannot be read counts as one that says nothing.

Containers that share a GPU by time alone or by MPS have no account of their own, so the driver is asked which processes
are on it; their cgroups name the pods. A pod's number is reported only if every process on the GPU is known; otherwise
some usage would be missing.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import msgspec

from lamina.agent.containers.paths import HostPaths, folder_name
from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Bound, Holding, claim_holdings
from lamina.core.mig_cards import mig_card
from lamina.core.mps import MpsDaemon
from lamina.core.quantities import MIB
from lamina.dialects.samples import Enforcer, MigSample, ShareSample
from lamina.enforcement import DeviceLimit, Usage, read_limits, read_usage
from lamina.enforcement.files import ARBITER, LIMITS, USAGE
from lamina.enforcement.launch_windows import read_window_lengths
from lamina.enforcement.layout import KINDS
from lamina.errors import LaminaError, Outside
from lamina.ports.cgroups import is_of_pod
from lamina.ports.files import Files
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess, GpuReading
from lamina.ports.set_aside import SetAside

MIN_PERIOD_S = 1.0
"""The shortest time over which GPU time is averaged."""
_NS = 1e9


class _Moment(NamedTuple):
    at: float
    busy_s: float


class UsageRates:
    """GPU time over the last seconds, from counters that are read at each request."""

    def __init__(self) -> None:
        self._moments: dict[tuple[str, str], tuple[_Moment, _Moment]] = {}

    def percent(self, holder: tuple[str, str], busy_s: float, now: float) -> float:
        """Percent of one GPU's time since the last reading that is at least MIN_PERIOD_S old; 0 at the first reading.

        `holder` is a container's name and a UUID.
        """
        present = _Moment(now, busy_s)
        older, newer = self._moments.get(holder, (present, present))
        if now - newer.at >= MIN_PERIOD_S:
            older, newer = newer, present
        self._moments[holder] = older, newer
        passed = now - older.at
        return max(0.0, min(100.0, 100 * (busy_s - older.busy_s) / passed)) if passed >= MIN_PERIOD_S else 0.0

    def keep(self, containers: set[str]) -> None:
        """Forget all other containers."""
        self._moments = {holder: moments for holder, moments in self._moments.items() if holder[0] in containers}


class DeviceReadings(NamedTuple):
    """What NVML reports about a node's devices, by UUID.

    `parts` are the MIG devices; `shared` are the GPUs and MIG devices that `sharers` found, with the bytes of each pod;
    `mps` are the daemons that serve clients.
    """

    node: str
    readings: Mapping[str, GpuReading]
    parts: Mapping[str, MigSample]
    shared: Mapping[str, Mapping[str, int] | None]
    mps: Mapping[str, MpsDaemon]


def share_samples(
    allocations: Sequence[Holding],
    paths: HostPaths,
    devices: DeviceReadings,
    *,
    driver_limited: Sequence[str],
    rates: UsageRates,
    aside: SetAside,
    now: float,
) -> list[ShareSample]:
    """A sample for each GPU of each container that was prepared. `now` is of a monotonic clock, in seconds.

    A container that fails is set aside.
    """
    found: list[ShareSample] = []
    names: set[str] = set()
    for allocation in allocations:
        bound = allocation.bound
        if bound is None or (name := f"{bound.pod_uid}/{bound.container}") in names:
            continue
        names.add(name)
        enforcer: Enforcer = "driver" if name in driver_limited else "facade"
        with aside.around("metrics of a container", f"{bound.namespace}/{bound.pod}, container {bound.container}"):
            for sample in _shares_of(bound, paths, devices, enforcer):
                measured = sample.enforcer == enforcer and sample.busy_is_whole
                if measured and sample.busy_s is not None:  # NVML knows what the others did lately
                    percent = rates.percent((name, sample.gpu), sample.busy_s, now)
                    sample = msgspec.structs.replace(sample, busy_percent=percent)
                found.append(msgspec.structs.replace(sample, pod_uid=bound.pod_uid, init=_ends_first(bound)))
    rates.keep(names)
    return found


def _ends_first(bound: Bound) -> bool:
    return bound.grant.init and not bound.grant.sidecar


def _shares_of(bound: Bound, paths: HostPaths, devices: DeviceReadings, enforcer: Enforcer) -> list[ShareSample]:
    """The samples of one container. `enforcer` is what limits it, if it has limits."""
    folder = paths.containers / folder_name(bound.pod_uid, bound.container)
    if not Files().has_file(folder / LIMITS):
        uuids = _devices_of(bound, devices.parts)
        return [_undivided(bound, place, uuid, devices) for place, uuid in enumerate(uuids)]
    try:
        limits = read_limits(folder / LIMITS)
    except LaminaError:
        return []  # half-written or being removed
    usage, windows = _usage(folder / USAGE), chain(read_window_lengths(folder / ARBITER), repeat(0.0))
    found = [_share(devices.node, bound, place, limit, usage, enforcer) for place, limit in enumerate(limits.devices)]
    return [msgspec.structs.replace(share, window_s=window_s) for share, window_s in zip(found, windows, strict=False)]


def mig_samples(node: str, gpus: Iterable[ObservedGpu], readings: Mapping[str, GpuReading]) -> dict[str, MigSample]:
    """The MIG devices of the GPUs of a node, by UUID."""
    return {
        instance.uuid: MigSample(
            node=node,
            gpu=gpu.facts.uuid,
            index=gpu.facts.index,
            uuid=instance.uuid,
            profile=instance.profile,
            instance_id=instance.id,
            start=instance.start,
            size=_memory_slices(gpu.facts.pci_device, instance.profile),
            reason=gpu.reason,
            reading=readings.get(instance.uuid, GpuReading()),
        )
        for gpu in gpus
        for instance in gpu.facts.instances
        if instance.uuid
    }


def _memory_slices(pci_device: int, profile: str) -> str:
    """How many memory slices a MIG device takes, as text; empty if the card is not known."""
    card = mig_card(pci_device)
    try:
        return "" if card is None else str(card.profile(profile).size)
    except KeyError:
        return ""


def _devices_of(bound: Bound, parts: Mapping[str, MigSample]) -> list[str]:
    """The GPUs and MIG devices that a container has, by UUID. Instances for grants are identified by place."""
    if not bound.instances:
        return list(bound.gpus)
    at = {(mig.gpu, mig.profile, mig.start): uuid for uuid, mig in parts.items()}
    places = [(each.gpu, each.profile, each.start) for each in bound.instances]
    return [at[place] for place in places if place in at]


def pods_by_device(allocations: Iterable[Holding]) -> Mapping[str, Sequence[str]]:
    """The UIDs of pods that share a GPU or MIG device by time alone, by UUID of the device.

    A pod with several such containers on one of them stands there as often.
    """
    holders: dict[str, dict[str, str]] = {}
    for allocation in allocations:
        if (bound := allocation.bound) is not None and any("::" in device for device in allocation.tickets):
            for uuid in bound.gpus:
                holders.setdefault(uuid, {})[f"{bound.pod_uid}/{bound.container}"] = bound.pod_uid
    return {uuid: tuple(each.values()) for uuid, each in holders.items()}


def _share(
    node: str, bound: Bound, place: int, limit: DeviceLimit, usage: Usage | None, enforcer: Enforcer
) -> ShareSample:
    device = next((one for one in usage.devices if one.uuid == limit.uuid), None) if usage else None
    held = {} if device is None else dict.fromkeys(KINDS, 0) | {"foreign": device.orphaned}
    for process in usage.processes if usage and device else ():
        for kind, size in process.held.get(limit.uuid, {}).items():
            held[kind] += size
    return ShareSample(
        node=node,
        namespace=bound.namespace,
        pod=bound.pod,
        container=bound.container,
        gpu=limit.uuid,
        place=place,
        enforcer=enforcer,
        limit=limit.memory_bytes,
        request=limit.guaranteed,
        cores_percent=limit.cores_percent,
        held=held,
        spilled=device.spilled if device else None,
        hosted=device.hosted if device else None,
        peak=device.peak if device else None,
        refusals=device.refusals if device else None,
        busy_s=device.busy_ns / _NS if device else None,
        busy_is_whole=limit.compute_policy.by_time,
        busy_percent=None,
        used_at=device.used_at_ns / _NS if device and device.used_at_ns is not None else None,
        waited_s=device.waited_ns / _NS if device else None,
        launch_s=device.launch_ns / _NS if device and device.launch_ns else None,
    )


def _undivided(bound: Bound, place: int, uuid: str, devices: DeviceReadings) -> ShareSample:
    """A container with a whole GPU or MIG device, or one of several that share it by time alone or by MPS."""
    reading, part, own = devices.readings.get(uuid, GpuReading()), devices.parts.get(uuid), uuid not in devices.shared
    used = reading.used_bytes if own else (devices.shared[uuid] or {}).get(bound.pod_uid)
    may = _allowed(uuid, devices)
    return ShareSample(
        node=devices.node,
        namespace=bound.namespace,
        pod=bound.pod,
        container=bound.container,
        gpu=uuid,
        place=place,
        enforcer=may.enforcer,
        limit=may.limit,
        cores_percent=may.cores_percent,
        held={} if used is None else {"data": used},
        peak=None,
        busy_s=0.0 if own and part is None else None,
        waited_s=0.0 if own and part is None else None,
        busy_percent=float(reading.busy_percent) if own and reading.busy_percent is not None else None,
        mig=part,
    )


class _Allowed(NamedTuple):
    """What limits a container, and how."""

    enforcer: Enforcer
    limit: int
    cores_percent: int | None


def _allowed(uuid: str, devices: DeviceReadings) -> _Allowed:
    """What one that has no limits of Lamina may use of a device. By MPS, that is what each of its processes may."""
    reading, shared = devices.readings.get(uuid, GpuReading()), uuid in devices.shared
    if shared and (daemon := devices.mps.get(uuid)):
        return _Allowed("mps", daemon.memory_mib * MIB, daemon.threads_percent)
    all_of_it = (reading.used_bytes or 0) + (reading.free_bytes or 0)
    if uuid in devices.parts:
        return _Allowed("none" if shared else "mig", all_of_it, None)
    return _Allowed("none", all_of_it, 0) if shared else _Allowed("whole", all_of_it, 100)


def _usage(path: Path) -> Usage | None:
    try:
        return read_usage(path)
    except LaminaError:
        return None


_MPS_SERVER = "nvidia-cuda-mps-server"[:15]
"""The name of the process that serves the clients of MPS. What it holds is no pod's."""


def memory_by_pod(processes: Iterable[GpuProcess], uids: Iterable[str], host: Host) -> Mapping[str, int] | None:
    """Bytes by UID of the pod; None if a process, or what it uses, is not known.

    A pod that is listed twice has several containers on the GPU. Which one uses what is not known, so it is left out.
    """
    listed = list(uids)
    used = dict.fromkeys(listed, 0)
    for process in processes:
        groups = host.process_cgroups(process.pid)
        pod = next((uid for uid in used if is_of_pod(groups, uid)), None)
        if pod is None and host.process_name(process.pid) == _MPS_SERVER:
            continue
        if pod is None or process.memory_bytes is None:
            return None
        used[pod] += process.memory_bytes
    return {uid: size for uid, size in used.items() if listed.count(uid) == 1}


Processes = tuple[GpuProcess, ...]
_KIND = "answer of NVML"


class NodeReadings(NamedTuple):
    """`gpus` and `parts` are keyed by UUID. What does not answer is missing. `claims` have a claim in the place of the
    pod, and its request in that of the container."""

    gpus: Mapping[str, GpuReading]
    parts: Mapping[str, MigSample]
    shares: Sequence[ShareSample]
    claims: Sequence[ShareSample] = ()


class NodeReader:
    """Collects everything at each call, and nothing in between."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore, host: Host) -> None:
        self._node = node
        self._record = node.record
        self._offers = offers
        self._host = host
        self._aside = node.aside
        self._rates = UsageRates()
        self._rates_of_claims = UsageRates()

    async def read(self) -> NodeReadings:
        """GPUs that do not answer leave what is known without asking them."""
        readings: dict[str, GpuReading] = {}
        with suppress(Outside), self._aside.around(_KIND, "readings", passing=Outside):
            readings = dict(await self._node.nvml.readings())
        running = {uuid: await self._processes(uuid) for uuid in pods_by_device(self._record.allocations)}
        return await asyncio.to_thread(self._readings, readings, running)

    async def _processes(self, uuid: str) -> Processes | None:
        """The processes on a GPU or MIG device; None if NVML does not report them."""
        with suppress(Outside), self._aside.around(_KIND, f"processes on {uuid}", passing=Outside):
            return await self._node.nvml.processes(uuid)
        return None

    def _memory_by_pod(self, uuid: str, processes: Processes, uids: Sequence[str]) -> Mapping[str, int] | None:
        with self._aside.around("processes", uuid):
            return memory_by_pod(processes, uids, self._host)
        return None

    def _readings(self, readings: dict[str, GpuReading], running: dict[str, Processes | None]) -> NodeReadings:
        published, state = self._offers.inventory.value, self._offers.state
        parts = mig_samples(self._node.node, state.observed, readings)
        sharers = pods_by_device(self._record.allocations)
        shared = {
            uuid: self._memory_by_pod(uuid, processes, sharers.get(uuid, ())) if processes is not None else None
            for uuid, processes in running.items()
        }
        daemons = {daemon.gpu: daemon for daemon in published.mps if daemon.ready} if published else {}
        devices = DeviceReadings(self._node.node, readings, parts, shared, daemons)

        def samples(of: Sequence[Holding], rates: UsageRates) -> list[ShareSample]:
            limited = published.driver_limited if published else ()
            now, paths = self._node.clock.monotonic(), self._node.paths
            return share_samples(of, paths, devices, driver_limited=limited, rates=rates, aside=self._aside, now=now)

        shares = samples(self._record.allocations, self._rates)
        claims = claim_holdings(self._record.claims)
        return NodeReadings(readings, parts, shares, samples(claims, self._rates_of_claims))
