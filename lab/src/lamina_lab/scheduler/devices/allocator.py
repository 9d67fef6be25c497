"""Allocates claims to devices that one node can use, and writes the result as the status of a claim has it."""

from collections.abc import Callable, Iterable, Sequence

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.device_selectors import selects
from lamina_lab.kubernetes.expressions import ExpressionError
from lamina_lab.scheduler.devices import requests, usage
from lamina_lab.scheduler.devices.model import DeviceId, PoolDevice, qualified
from lamina_lab.scheduler.devices.pools import gather, reaches
from lamina_lab.scheduler.devices.requests import Alternative, ClaimRequests
from lamina_lab.scheduler.devices.result import allocation
from lamina_lab.scheduler.devices.search import AllocationError, Search, Suits


class Allocator:
    """Allocates with a fixed view of the cluster: slices, classes, claims that are allocated already, and taint rules.

    `new_id` makes the identity of each share of a device.
    """

    def __init__(
        self,
        slices: Iterable[Object],
        classes: Iterable[Object],
        allocated: Iterable[Object],
        new_id: Callable[[], str],
        rules: Iterable[Object] = (),
    ) -> None:
        self._pools = gather(slices, rules)
        self._classes = {objects.name(entry): entry for entry in classes}
        self._allocated = list(allocated)
        self._new_id = new_id

    def allocate(self, node: Object, claims: Sequence[Object]) -> list[Object] | None:
        """`status.allocation` of each claim, or None if the node lacks devices. Raises AllocationError."""
        wanted = [requests.parse(claim) for claim in claims]
        for claim in wanted:
            self._check_classes(claim)

        pools = [pool for pool in self._pools if any(reaches(place, node) for place in pool.places)]
        found = Search(wanted, pools, usage.used(self._allocated), self._suits(node)).run()
        if found is None:
            return None
        return [
            allocation(claim, [chosen for chosen in found if chosen.claim is claim], self._classes, node, self._new_id)
            for claim in wanted
        ]

    def _suits(self, node: Object) -> Suits:
        """Whether a device can be used on the node and is selected. The search asks again after every step back."""
        known: dict[tuple[int, str, DeviceId], bool] = {}

        def suits(claim: ClaimRequests, wanted: Alternative, device: PoolDevice) -> bool:
            key = (id(claim), wanted.name, device.id)
            if key not in known:
                known[key] = reaches(device.place, node) and self._selected(claim, wanted, device)
            return known[key]

        return suits

    def _selected(self, claim: ClaimRequests, wanted: Alternative, device: PoolDevice) -> bool:
        of_class = objects.spec(self._classes[wanted.device_class]).get("selectors") or ()
        expressions = [(entry.get("cel") or {}).get("expression", "") for entry in of_class]
        return _all_select(f"class {wanted.device_class}", expressions, device) and _all_select(
            f"claim {claim.key}", wanted.selectors, device
        )

    def _check_classes(self, claim: ClaimRequests) -> None:
        for wanted in (alternative for request in claim.requests for alternative in request):
            if wanted.device_class not in self._classes:
                raise AllocationError(
                    f"claim {claim.key}, request {wanted.name}: could not retrieve device class "
                    f'{wanted.device_class}: deviceclass.resource.k8s.io "{wanted.device_class}" not found'
                )


def _all_select(owner: str, expressions: Sequence[str], device: PoolDevice) -> bool:
    values = {qualified(name, device.id.driver): capacity.value for name, capacity in device.capacity.items()}
    for number, expression in enumerate(expressions):
        try:
            if not selects(expression, device.id.driver, device.attributes, values, shareable=device.shareable):
                return False
        except ExpressionError as error:
            raise AllocationError(f"{owner}: selector #{number}: {error}") from error
    return True
