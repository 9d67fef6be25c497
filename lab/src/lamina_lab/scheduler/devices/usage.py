"""What allocated claims hold: devices of their own, parts of shared devices, and counters of pools."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.devices.capacity import Amounts
from lamina_lab.scheduler.devices.model import DeviceId, PoolDevice, amount
from lamina_lab.scheduler.devices.pools import Pool


class ClaimedDevices:
    """Devices in use. Admin access counts nothing. `copy` and `take` serve the search for an allocation."""

    def __init__(self) -> None:
        self.exclusive: set[DeviceId] = set()
        self.shared: dict[DeviceId, Amounts] = {}
        self._shares: dict[DeviceId, int] = {}

    def count(self, claim: Object) -> None:
        """Add what an allocated claim holds."""
        allocation = objects.status(claim).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if result.get("adminAccess"):
                continue
            id = DeviceId(result["driver"], result["pool"], result["device"])
            if result.get("shareID"):
                self.share(id, {name: amount(value) for name, value in (result.get("consumedCapacity") or {}).items()})
            else:
                self.exclusive.add(id)

    def share(self, id: DeviceId, amounts: Mapping[str, Fraction]) -> None:
        held = self.shared.setdefault(id, {})
        self._shares[id] = self._shares.get(id, 0) + 1
        for name, value in amounts.items():
            held[name] = held.get(name, Fraction(0)) + value

    def unshare(self, id: DeviceId, amounts: Mapping[str, Fraction]) -> None:
        for name, value in amounts.items():
            self.shared[id][name] -= value
        self._shares[id] -= 1
        if not self._shares[id]:
            del self._shares[id], self.shared[id]

    def holds(self, id: DeviceId) -> bool:
        return id in self.exclusive or id in self.shared


def used(claims: Iterable[Object]) -> ClaimedDevices:
    """The usage of all allocated claims in the cluster."""
    usage = ClaimedDevices()
    for claim in claims:
        usage.count(claim)
    return usage


def counters_left(pool: Pool, usage: ClaimedDevices) -> dict[str, Amounts]:
    """What is left of each counter of the pool. A device in use takes its counters once, however many share it."""
    left = {name: dict(amounts) for name, amounts in pool.counter_sets.items()}
    for device in pool.devices:
        if usage.holds(device.id):
            take(left, device)
    return left


def take(left: dict[str, Amounts], device: PoolDevice, sign: int = 1) -> None:
    """Take the device's counters, or return them with `sign` -1."""
    for name, amounts in device.counters:
        for counter, value in amounts.items():
            left[name][counter] -= sign * value


def has_counters(left: Mapping[str, Amounts], device: PoolDevice) -> bool:
    """Whether there is enough of every counter for the device."""
    wanted: dict[tuple[str, str], Fraction] = {}
    for name, amounts in device.counters:
        for counter, value in amounts.items():
            wanted[name, counter] = wanted.get((name, counter), Fraction(0)) + value
    return all(left[name][counter] >= value for (name, counter), value in wanted.items())
