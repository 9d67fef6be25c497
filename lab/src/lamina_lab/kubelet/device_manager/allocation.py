"""Which container holds which device: kubelet's device manager without gRPC, as plain data.

A resource's devices are healthy or not; its plugin is connected or gone. A container's allocation is made once, when
its pod is admitted, and lasts until the pod ends. Error messages are kubelet's.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from lamina_lab.kubernetes.quantities import parse

FORGET_AFTER_S = 300.0
"""How long a resource stays in the node's capacity after its plugin disconnected."""


class DeviceError(Exception):
    """Devices cannot be allocated; the message is kubelet's."""


class Device(Struct, frozen=True):
    """A device as its plugin reports it; `numa` is empty if the plugin reports no topology."""

    id: str
    healthy: bool
    numa: tuple[int, ...] = ()


class Answer(Struct, frozen=True):
    """A plugin's answer to Allocate for one container, kept as long as the allocation."""

    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)  # path in the container -> path on the host
    cdi: tuple[str, ...] = ()


class DeviceAllocation(Struct, frozen=True):
    """Devices of one resource that one container holds. `numa` has each device's nodes at the time."""

    pod_uid: str
    container: str
    resource: str
    ids: tuple[str, ...]
    numa: Mapping[str, tuple[int, ...]]
    answer: Answer


class Choice(Struct, frozen=True):
    """Devices that are fixed already, and those from which `missing` more are chosen, by the plugin's preference."""

    resource: str
    fixed: tuple[str, ...]
    available: tuple[str, ...]
    missing: int


class ExtendedResource(Struct):
    """One extended resource. `gone_at` is when its plugin disconnected, None while it is connected."""

    devices: dict[str, Device] = field(default_factory=dict)
    gone_at: float | None = None

    def healthy(self) -> list[str]:
        if self.gone_at is not None:
            return []
        return [device.id for device in self.devices.values() if device.healthy]


class DeviceLedger:
    """All resources and allocations of the node. It has one owner, no locks and does no I/O."""

    def __init__(self) -> None:
        self.resources: dict[str, ExtendedResource] = {}
        self._held: dict[tuple[str, str], dict[str, DeviceAllocation]] = {}

    # What plugins report.

    def report(self, resource: str, devices: Iterable[Device]) -> None:
        """The full list of a connected plugin."""
        self.resources[resource] = ExtendedResource({device.id: device for device in devices})

    def plugin_gone(self, resource: str, now: float) -> None:
        if found := self.resources.get(resource):
            found.gone_at = now

    def expect(self, resource: str) -> None:
        """A resource from before a restart: it has no devices until its plugin registers again."""
        self.resources.setdefault(resource, ExtendedResource(gone_at=0.0))

    def amounts(self, now: float) -> dict[str, tuple[int, int]]:
        """Capacity and allocatable of each resource."""
        result = {}
        for name, resource in self.resources.items():
            forgotten = resource.gone_at is not None and now - resource.gone_at > FORGET_AFTER_S
            result[name] = (0 if forgotten else len(resource.devices), len(resource.healthy()))
        return result

    # What containers hold.

    def allocations(self) -> list[DeviceAllocation]:
        return [allocation for held in self._held.values() for allocation in held.values()]

    def held_by(self, pod_uid: str, container: str) -> dict[str, DeviceAllocation]:
        """Allocations of one container by resource."""
        return dict(self._held.get((pod_uid, container), {}))

    def hold(self, allocation: DeviceAllocation) -> None:
        self._held.setdefault((allocation.pod_uid, allocation.container), {})[allocation.resource] = allocation

    def release(self, pod_uid: str) -> bool:
        """Free everything that a pod holds. Returns whether it held anything."""
        mine = [key for key in self._held if key[0] == pod_uid]
        for key in mine:
            del self._held[key]
        return bool(mine)

    def retain(self, pod_uids: Collection[str]) -> None:
        """Free what pods hold that are not in `pod_uids`."""
        for uid in {key[0] for key in self._held} - set(pod_uids):
            self.release(uid)

    def choose(self, pod_uid: str, container: str, resource: str, count: int, reusable: Collection[str]) -> Choice:
        """From where `count` devices for a container may come. Raises DeviceError if there are not enough.

        `reusable` are devices of the pod's init containers that have ended when this one runs.
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


def pick(choice: Choice, preferred: Iterable[str]) -> tuple[str, ...]:
    """The devices of `choice`: fixed ones, then available ones that the plugin prefers, then any."""
    wanted = [id for id in dict.fromkeys(preferred) if id in choice.available]
    rest = [id for id in choice.available if id not in wanted]
    return choice.fixed + tuple((wanted + rest)[: choice.missing])


def device_limits(pod: Mapping[str, Any], container: Mapping[str, Any], known: Collection[str]) -> dict[str, int]:
    """The device resources among a container's limits with their counts, without zeros.

    Those that a claim serves instead, by the pod's status, are not among them.
    """
    made = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    by_claim = {(each["containerName"], each["resourceName"]) for each in made.get("requestMappings") or ()}
    limits = (container.get("resources") or {}).get("limits") or {}
    devices = [name for name in limits if name in known and (container["name"], name) not in by_claim]
    counts = {name: int(parse(limits[name]) or 0) for name in devices}
    return {name: count for name, count in counts.items() if count > 0}


def natural(text: str) -> tuple[str, int, str]:
    """Sort key that puts ticket-9 before ticket-10."""
    head = text.rstrip("0123456789")
    tail = text[len(head) :]
    return head, int(tail or -1), text
