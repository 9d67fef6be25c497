"""Whether the claims of a pod can be allocated on a node, as far as it can be said without evaluating expressions.

kube-scheduler allocates. As it does, requests are tried here in their order, each with the devices in the order in
which they are offered, and again with others where a later request finds none. That no place is found is certain
unless an expression was not evaluated, or the search was given up.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.dra.device_room import ClaimRoom, DeviceRoom
from lamina.dra.names import base_request
from lamina.dra.selectors import attribute_of, selects_all
from lamina.dra.wanted_devices import AttributeRule, WantedClaim, WantedDevices

ClassSelectors = Mapping[str, Sequence[str]]
"""The expressions of each DeviceClass that exists."""
MAX_DEVICES = 32
"""Of one claim, as Kubernetes limits them."""
_MAX_STEPS = 2000
"""Of the search on one node."""


class ClaimFit(NamedTuple):
    """`lacks` says in words what the node lacks, and is empty where it has enough or where that is not known. `lasting`
    where it is lacking even while nothing is in use."""

    lacks: str = ""
    certain: bool = True
    lasting: bool = False
    devices: tuple[str, ...] = ()
    """The devices that were chosen."""


def fit_claims(claims: Iterable[WantedClaim], room: ClaimRoom, classes: ClassSelectors) -> ClaimFit:
    """Whether the node has room for all of the claims. What fits is taken from `room`; try it on a copy."""
    requests = [
        _Request(number, alternatives, claim.rules)
        for number, claim in enumerate(claims)
        for alternatives in claim.requests
    ]
    for request in requests:
        found = [_lack(wanted, room, classes) for wanted in request.alternatives]
        if found and all(each.lacks for each in found):
            return ClaimFit(found[-1].lacks, lasting=all(each.lasting for each in found))
    search = _Search(classes)
    place = search.place(requests, room, ())
    if place is not None:
        room.replace_by(place.room)
        certain = place.certain and not search.keeps_counters
        return ClaimFit(certain=certain, devices=tuple(chosen.device.name for chosen in place.chosen))
    if search.uncertain:
        return ClaimFit(certain=False)
    return ClaimFit("its requests do not fit together on what is free, though each of them would alone")


class _Request(NamedTuple):
    """One request of the claim `number`, with the rules of that claim."""

    number: int
    alternatives: Sequence[WantedDevices]
    rules: Sequence[AttributeRule]


class _Chosen(NamedTuple):
    number: int
    request: str
    device: DeviceRoom


class _Place(NamedTuple):
    chosen: tuple[_Chosen, ...]
    room: ClaimRoom
    certain: bool = True


class _Search:
    """For a place on one node. `uncertain` if something was decided that is not known, or it was given up.

    `keeps_counters` if a device with counters was given up: kube-scheduler 1.36 keeps those for the rest of its search,
    so it may miss a place that is there.
    """

    def __init__(self, classes: ClassSelectors) -> None:
        self._classes = classes
        self._left = _MAX_STEPS
        self.uncertain = False
        self.keeps_counters = False

    def place(self, requests: Sequence[_Request], room: ClaimRoom, chosen: tuple[_Chosen, ...]) -> _Place | None:
        """A place for all of the requests next to what was chosen; None where none was found."""
        if not requests:
            return _Place(chosen, room)
        for wanted in requests[0].alternatives:
            self.uncertain = self.uncertain or wanted.uncertain
            known = list(_selected(wanted, room, self._classes))
            self.uncertain = self.uncertain or any(each is None for _, each in known)
            candidates = [
                (at, each is True)
                for at, (device, each) in enumerate(known)
                if each is not False and (wanted.count or _is_large_enough(wanted, device))
            ]
            number = len(candidates) if wanted.count is None else wanted.count
            found = self._devices(wanted, requests, candidates, number, room, chosen)
            if found is not None:
                return found._replace(certain=found.certain and not wanted.uncertain)
        return None

    def _devices(
        self,
        wanted: WantedDevices,
        requests: Sequence[_Request],
        candidates: Sequence[tuple[int, bool]],
        number: int,
        room: ClaimRoom,
        chosen: tuple[_Chosen, ...],
    ) -> _Place | None:
        """The same with `number` more devices for the first request, of the candidates, given by their places."""
        if number == 0:
            return self.place(requests[1:], room, chosen)
        for order, (at, known) in enumerate(candidates):
            if self._left == 0:
                self.uncertain = True
                return None
            self._left -= 1
            if sum(each.number == requests[0].number for each in chosen) == MAX_DEVICES:
                return None
            device = room.devices[at]
            if not _has_room(wanted, device, room) or not _obeys(requests[0], chosen, wanted.request, device):
                continue
            trial = room.copy()
            if not wanted.admin:
                trial.take(trial.devices[at], wanted.memory_mib, wanted.cores)
            added = (*chosen, _Chosen(requests[0].number, wanted.request, device))
            found = self._devices(wanted, requests, candidates[order + 1 :], number - 1, trial, added)
            if found is not None:
                return found._replace(certain=found.certain and known)
            self.keeps_counters = self.keeps_counters or bool(device.consumes)
        return None


def _selected(
    wanted: WantedDevices, room: ClaimRoom, classes: ClassSelectors
) -> Iterable[tuple[DeviceRoom, bool | None]]:
    expressions = (*classes.get(wanted.device_class, ()), *wanted.expressions)
    return [(device, selects_all(expressions, device.driver, device.attributes)) for device in room.devices]


def _has_room(wanted: WantedDevices, device: DeviceRoom, room: ClaimRoom) -> bool:
    if wanted.admin:
        return True
    if (device.taints and not wanted.uncertain) or room.is_blocked(device):
        return False
    needed = device.memory_mib if wanted.memory_mib is None else wanted.memory_mib
    if device.shared:
        return needed <= device.free_mib and wanted.cores <= (device.free_cores or 0)
    return not device.in_use and needed <= device.memory_mib


def _obeys(of: _Request, chosen: Sequence[_Chosen], request: str, device: DeviceRoom) -> bool:
    own = [each for each in chosen if each.number == of.number]
    return all(_obeys_rule(rule, own, request, device) for rule in of.rules)


def _obeys_rule(rule: AttributeRule, chosen: Sequence[_Chosen], request: str, device: DeviceRoom) -> bool:
    if not _concerns(rule, request):
        return True
    value = attribute_of(device.driver, device.attributes, rule.attribute)
    others = [
        attribute_of(each.device.driver, each.device.attributes, rule.attribute)
        for each in chosen
        if _concerns(rule, each.request)
    ]
    return value is not None and all((other != value) is rule.distinct for other in others)


def _concerns(rule: AttributeRule, request: str) -> bool:
    return not rule.requests or bool({request, base_request(request)} & set(rule.requests))


def _lack(wanted: WantedDevices, room: ClaimRoom, classes: ClassSelectors) -> ClaimFit:
    """Why the node has no room for this request alone, where that is certain."""
    name, whose = f"request {wanted.request}", f"DeviceClass {wanted.device_class}"
    of_class = [device for device, known in _selected(_plain(wanted), room, classes) if known is not False]
    selected = list(_selected(wanted, room, classes))
    devices = [device for device, known in selected if known is not False]
    if not of_class:
        return ClaimFit(f"{name}: no device here is of {whose}", lasting=True)
    if not devices:
        return ClaimFit(f"{name}: its selectors select none of {_number(of_class)} of {whose}", lasting=True)
    largest = max(device.memory_mib for device in devices)
    if wanted.memory_mib is not None and wanted.memory_mib > largest:
        return ClaimFit(f"{name} needs {wanted.memory_mib} MiB; the largest device has {largest} MiB", lasting=True)
    if wanted.cores > 100:
        return ClaimFit(f"{name} needs {wanted.cores} cores; a device has 100", lasting=True)
    if wanted.count is None:
        devices = [device for device in devices if _is_large_enough(wanted, device)]
        free = sum(_has_room(wanted, device, room) for device in devices)
        if free == len(devices) or any(known is None for _, known in selected):
            return ClaimFit()
        return ClaimFit(f"{name} needs all {_number(devices)} of this node; {free} have room")
    if len(devices) < wanted.count:
        here = len(devices)
        return ClaimFit(f"{name} needs {wanted.count} devices of {whose}; this node offers {here}", lasting=True)
    tainted = sorted({taint for device in devices for taint in device.taints})
    if all(device.taints for device in devices) and not wanted.uncertain:
        return ClaimFit(f"{name}: all of {_number(devices)} of {whose} have the taint {' or '.join(tainted)}")
    room_for = sum(_has_room(wanted, device, room) for device in devices)
    if room_for >= wanted.count:
        return ClaimFit()
    return ClaimFit(f"{name} {_in_use(wanted, devices, room_for, room)}")


def _is_large_enough(wanted: WantedDevices, device: DeviceRoom) -> bool:
    return wanted.memory_mib is None or wanted.memory_mib <= device.memory_mib


def _in_use(wanted: WantedDevices, devices: Sequence[DeviceRoom], room_for: int, room: ClaimRoom) -> str:
    if wanted.count != 1:
        return f"needs {wanted.count} devices; there is room for {room_for}"
    shared = [device for device in devices if device.shared and not device.taints and not room.is_blocked(device)]
    if wanted.memory_mib is None or not shared:
        return f"needs a whole device; none of {len(devices)} is free"
    if (best := max(device.free_mib for device in shared)) < wanted.memory_mib:
        return f"needs {wanted.memory_mib} MiB; the best device has {best} MiB free"
    most = max(device.free_cores or 0 for device in shared if device.free_mib >= wanted.memory_mib)
    return f"needs {wanted.cores} % of a device's time; the most free is {most} %"


def _plain(wanted: WantedDevices) -> WantedDevices:
    """The request without selectors of its own."""
    return WantedDevices(request=wanted.request, device_class=wanted.device_class)


def _number(devices: Sequence[DeviceRoom]) -> str:
    return f"{len(devices)} device{'' if len(devices) == 1 else 's'}"
