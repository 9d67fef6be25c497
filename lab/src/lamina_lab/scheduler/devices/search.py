"""The search for devices that serve several claims on one node.

As in kube-scheduler, the search tries all combinations in the order of pools and devices, and takes the first that
works. Nothing is scored: drivers influence packing by the order in which they publish devices. A chosen device is in
use for the rest of the search, until the search gives it up.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from lamina_lab.kubernetes.taints import untolerated
from lamina_lab.scheduler.devices import capacity
from lamina_lab.scheduler.devices.constraints import satisfied
from lamina_lab.scheduler.devices.model import PoolDevice
from lamina_lab.scheduler.devices.pools import Pool
from lamina_lab.scheduler.devices.requests import Alternative, ClaimRequests
from lamina_lab.scheduler.devices.usage import ClaimedDevices, counters_left, has_counters, take

MAX_RESULTS = 32
"""Devices that the status of a claim can hold."""
MAX_STEPS = 20_000
"""Devices that one search tries. kube-scheduler stops after a time instead."""

Suits = Callable[[ClaimRequests, Alternative, PoolDevice], bool]
Undo = Callable[[], None]


class AllocationError(Exception):
    """Claims cannot be allocated whatever is free: a class is missing, a selector fails, a pool is being updated."""


class _TooManyResults(Exception):
    """The claim would have more devices than its status can hold, whichever they are."""


class Chosen(Struct, frozen=True):
    """A device for one request. `consumed` is its part of a shareable device; None for a device of its own."""

    claim: ClaimRequests
    alternative: Alternative
    device: PoolDevice
    consumed: Mapping[str, Fraction] | None


class Search:
    """One search. `pools` are those of one node, `suits` says whether a device matches a request whatever is free.

    `usage` is changed during the search and is as before when the search fails.
    """

    def __init__(
        self, claims: Sequence[ClaimRequests], pools: Sequence[Pool], usage: ClaimedDevices, suits: Suits
    ) -> None:
        self._claims = claims
        self._usage = usage
        self._suits = suits
        self._candidates = [device for pool in pools if not pool.problem for device in pool.devices]
        self._troubled = next((pool for pool in pools if pool.problem), None)
        self._left = {(pool.driver, pool.name): counters_left(pool, usage) for pool in pools if not pool.problem}
        self._all = {
            (id(claim), wanted.name): self._all_devices(claim, wanted)
            for claim in claims
            for request in claim.requests
            for wanted in request
            if wanted.count is None
        }
        self._chosen: list[Chosen] = []
        self._steps = 0

    def run(self) -> list[Chosen] | None:
        """The devices for all requests of all claims; None if there is no solution. Raises AllocationError."""
        try:
            return self._chosen if self._request(0, 0) else None
        except _TooManyResults:
            return None

    def _request(self, claim: int, number: int) -> bool:
        """Serve the requests from number `number` of claim `claim` on."""
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if number == len(requests):
            try:
                return self._request(claim + 1, 0)
            except _TooManyResults:
                return False

        def proceed() -> bool:
            return self._request(claim, number + 1)

        too_many = 0
        for wanted in requests[number]:
            try:
                if self._alternative(self._claims[claim], wanted, proceed):
                    return True
            except _TooManyResults:
                too_many += 1
        if too_many == len(requests[number]):
            raise _TooManyResults
        return False

    def _alternative(self, claim: ClaimRequests, wanted: Alternative, proceed: Callable[[], bool]) -> bool:
        devices = self._candidates if wanted.count is not None else self._all[id(claim), wanted.name]
        count = len(devices) if wanted.count is None else wanted.count
        room = MAX_RESULTS - sum(chosen.claim is claim for chosen in self._chosen)
        if count > room:
            raise _TooManyResults
        return count > 0 and self._some(claim, wanted, devices, 0, count, proceed)

    def _all_devices(self, claim: ClaimRequests, wanted: Alternative) -> list[PoolDevice]:
        """The devices of a request for all of them, which is decided before the search. Raises AllocationError."""
        if self._troubled:
            pool = self._troubled
            raise AllocationError(
                f"claim {claim.key}, request {wanted.name}: asks for all devices, but pool {pool.driver}/"
                f"{pool.name} {pool.problem}"
            )
        suitable = (device for device in self._candidates if self._suits(claim, wanted, device))
        return [device for device in suitable if self._consumed(wanted, device) is not None]

    def _some(
        self,
        claim: ClaimRequests,
        wanted: Alternative,
        devices: Sequence[PoolDevice],
        start: int,
        count: int,
        proceed: Callable[[], bool],
    ) -> bool:
        """Choose `count` of `devices` from number `start` on, in any combination that works.

        Selectors are evaluated for a device only when it is its turn, so one that fails for a later device does no
        harm.
        """
        if count == 0:
            return proceed()
        last = len(devices) if wanted.count is not None else start + 1
        for at in range(start, last):
            undo = self._take(claim, wanted, devices[at])
            if undo is None:
                continue
            try:
                if self._some(claim, wanted, devices, at + 1, count - 1, proceed):
                    return True
            except _TooManyResults:
                undo()
                raise
            undo()
        return False

    def _take(self, claim: ClaimRequests, wanted: Alternative, device: PoolDevice) -> Undo | None:
        """Choose one device. Returns how to give it up; None if it cannot be chosen now.

        As in Kubernetes 1.36, counters stay taken for the rest of the search when a taint or a constraint excludes
        the device afterwards, or when the search gives up a share.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise AllocationError(f"claim {claim.key}: no solution within {MAX_STEPS} steps")
        if self._in_use(claim, wanted, device) or not self._suits(claim, wanted, device):
            return None
        consumed = self._consumed(wanted, device)
        if consumed is None:
            return None
        left = self._left[device.id.driver, device.id.pool]
        charged = device.id not in self._usage.shared
        if charged and not has_counters(left, device):
            return None
        if charged:
            take(left, device)
        if untolerated(device.taints, wanted.tolerations) is not None:
            return None
        if not satisfied(claim.constraints, [*self._of(claim), (wanted, device)]):
            if wanted.count is None:
                raise AllocationError(
                    f"claim {claim.key}, request {wanted.name}: cannot add device {device.id} because a claim "
                    "constraint would not be satisfied"
                )
            return None
        chosen = Chosen(claim, wanted, device, consumed if device.shareable else None)
        self._chosen.append(chosen)
        release = self._hold(chosen)

        def undo() -> None:
            self._chosen.pop()
            release()
            if charged and not device.shareable:
                take(left, device, -1)

        return undo

    def _in_use(self, claim: ClaimRequests, wanted: Alternative, device: PoolDevice) -> bool:
        """Admin access shares a device with everybody, but a claim gets a device that is not shareable once."""
        if wanted.admin:
            mine = any(chosen.device.id == device.id for chosen in self._chosen if chosen.claim is claim)
            return mine and not device.shareable
        return device.id in self._usage.exclusive

    def _hold(self, chosen: Chosen) -> Undo:
        id = chosen.device.id
        if chosen.consumed is not None:
            consumed = chosen.consumed
            self._usage.share(id, consumed)
            return lambda: self._usage.unshare(id, consumed)
        if id in self._usage.exclusive:  # admin access
            return lambda: None
        self._usage.exclusive.add(id)
        return lambda: self._usage.exclusive.discard(id)

    def _of(self, claim: ClaimRequests) -> list[tuple[Alternative, PoolDevice]]:
        return [(chosen.alternative, chosen.device) for chosen in self._chosen if chosen.claim is claim]

    def _consumed(self, wanted: Alternative, device: PoolDevice) -> Mapping[str, Fraction] | None:
        """What the request takes of the device; None if there is less."""
        consumed = capacity.consumed(device.capacity, wanted.capacity)
        held = self._usage.shared.get(device.id) or {}
        return consumed if consumed is not None and capacity.fits(device.capacity, consumed, held) else None
