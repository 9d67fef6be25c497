"""Who holds which device: kubelet's device manager without its gRPC, as plain data.

A resource's devices are healthy or not; the plugin that reports them is connected or gone. A container's allocation is
made once, when its pod is admitted, and lasts until the pod ends. Sentences of errors are kubelet's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lamina.lab.api.quantities import parse

FORGET_AFTER_S = 300.0
"""How long after its plugin went a resource still counts in the node's capacity."""


class DeviceError(Exception):
    """Devices cannot be given; the message is kubelet's."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as its plugin reports it; `numa` is empty where the plugin says nothing of it."""

    id: str
    healthy: bool
    numa: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a plugin's Allocate answered for one container; kept as long as the allocation."""

    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)  # path in the container -> path on the host
    cdi: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """Devices of one resource that one container holds. `numa` has the nodes of each device as of the allocation."""

    pod_uid: str
    container: str
    resource: str
    ids: tuple[str, ...]
    numa: Mapping[str, tuple[int, ...]]
    answer: Answer


@dataclass(frozen=True, slots=True)
class Choice:
    """Devices already chosen, and those among which `missing` more are to be found, the plugin's preference first."""

    resource: str
    fixed: tuple[str, ...]
    available: tuple[str, ...]
    missing: int


@dataclass(slots=True)
class Resource:
    """One extended resource. `gone_at` is when its plugin went, None while it is connected."""

    devices: dict[str, Device] = field(default_factory=dict)
    gone_at: float | None = None

    def healthy(self) -> list[str]:
        if self.gone_at is not None:
            return []
        return [device.id for device in self.devices.values() if device.healthy]


class Ledger:
    """All resources of the node and all allocations. One owner, no locks, no I/O."""

    def __init__(self) -> None:
        self.resources: dict[str, Resource] = {}
        self._held: dict[tuple[str, str], dict[str, Allocation]] = {}

    # What plugins report.

    def report(self, resource: str, devices: Iterable[Device]) -> None:
        """A connected plugin's whole list."""
        self.resources[resource] = Resource({device.id: device for device in devices})

    def plugin_gone(self, resource: str, now: float) -> None:
        if found := self.resources.get(resource):
            found.gone_at = now

    def expect(self, resource: str) -> None:
        """A resource known from before a restart: nothing of it until its plugin registers again."""
        self.resources.setdefault(resource, Resource(gone_at=0.0))

    def amounts(self, now: float) -> dict[str, tuple[int, int]]:
        """Capacity and allocatable of each resource."""
        result = {}
        for name, resource in self.resources.items():
            forgotten = resource.gone_at is not None and now - resource.gone_at > FORGET_AFTER_S
            result[name] = (0 if forgotten else len(resource.devices), len(resource.healthy()))
        return result

    # What containers hold.

    def allocations(self) -> list[Allocation]:
        return [allocation for held in self._held.values() for allocation in held.values()]

    def held_by(self, pod_uid: str, container: str) -> dict[str, Allocation]:
        """Allocations of one container by resource."""
        return dict(self._held.get((pod_uid, container), {}))

    def hold(self, allocation: Allocation) -> None:
        self._held.setdefault((allocation.pod_uid, allocation.container), {})[allocation.resource] = allocation

    def release(self, pod_uid: str) -> bool:
        """Free all that a pod holds; returns whether it held anything."""
        mine = [key for key in self._held if key[0] == pod_uid]
        for key in mine:
            del self._held[key]
        return bool(mine)

    def retain(self, pod_uids: Collection[str]) -> None:
        """Free what pods hold that are not among `pod_uids`."""
        for uid in {key[0] for key in self._held} - set(pod_uids):
            self.release(uid)

    def choose(self, pod_uid: str, container: str, resource: str, count: int, reusable: Collection[str]) -> Choice:
        """Where `count` devices for a container may come from. Raises DeviceError where there are not enough.

        `reusable` are devices of the pod's init containers that have ended by the time this one runs.
        """
        found = self.resources[resource]
        healthy = found.healthy()
        held = self.held_by(pod_uid, container).get(resource)
        if held is not None and len(held.ids) != count:
            raise DeviceError(
                f'pod "{pod_uid}" container "{container}" changed request for resource "{resource}" '
                f"from {len(held.ids)} to {count}"
            )
        if not healthy:
            raise DeviceError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if held is not None:
            if not set(held.ids) <= set(healthy):
                raise DeviceError(
                    f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
                )
            return Choice(resource, held.ids, (), 0)
        fixed = tuple(sorted(reusable, key=natural))[:count]
        missing = count - len(fixed)
        in_use = self._in_use(resource)
        available = tuple(sorted((id for id in healthy if id not in in_use), key=natural))
        if len(available) < missing:
            raise DeviceError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {missing}, Available: {len(available)}"
            )
        return Choice(resource, fixed, available, missing)

    def numa_of(self, resource: str, ids: Iterable[str]) -> dict[str, tuple[int, ...]]:
        devices = self.resources[resource].devices
        return {id: devices[id].numa for id in ids if id in devices}

    def _in_use(self, resource: str) -> set[str]:
        return {id for held in self._held.values() if resource in held for id in held[resource].ids}


def settle(choice: Choice, preferred: Iterable[str]) -> tuple[str, ...]:
    """The devices of `choice`: fixed ones, then those of the plugin's preference that are available, then any."""
    wanted = [id for id in dict.fromkeys(preferred) if id in choice.available]
    rest = [id for id in choice.available if id not in wanted]
    return choice.fixed + tuple((wanted + rest)[: choice.missing])


def device_limits(container: Mapping[str, object], known: Collection[str]) -> dict[str, int]:
    """The device resources among a container's limits, with their counts; zero counts are left out."""
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, Mapping) else None
    counts = {name: int(parse(value) or 0) for name, value in (limits or {}).items() if name in known}
    return {name: count for name, count in counts.items() if count > 0}


def natural(text: str) -> tuple[str, int, str]:
    """Sort key that puts ticket-9 before ticket-10."""
    head = text.rstrip("0123456789")
    tail = text[len(head) :]
    return head, int(tail or -1), text
