"""How much of a shareable device a request consumes."""

from collections.abc import Mapping
from fractions import Fraction

from lamina_lab.scheduler.devices.model import DeviceCapacity

Amounts = dict[str, Fraction]


def consumed(capacities: Mapping[str, DeviceCapacity], requested: Mapping[str, Fraction]) -> Amounts | None:
    """What a request takes of each capacity, rounded up as the policy says.

    None if it names a capacity that the device lacks, or asks for an amount that the policy does not allow.
    """
    if not requested.keys() <= capacities.keys():
        return None
    amounts = {name: _rounded(capacity, requested.get(name)) for name, capacity in capacities.items()}
    allowed = all(_allowed(capacities[name], amount) for name, amount in amounts.items())
    return amounts if allowed else None


def fits(capacities: Mapping[str, DeviceCapacity], *parts: Mapping[str, Fraction]) -> bool:
    """Whether the sum of `parts` is within every capacity."""
    return all(
        sum((part.get(name, Fraction(0)) for part in parts), Fraction(0)) <= capacity.value
        for name, capacity in capacities.items()
    )


def _rounded(capacity: DeviceCapacity, requested: Fraction | None) -> Fraction:
    if requested is None:
        return capacity.value if capacity.default is None else capacity.default
    if capacity.minimum is not None:
        if requested < capacity.minimum or capacity.step is None:
            return max(requested, capacity.minimum)
        steps = -((capacity.minimum - requested) // capacity.step)
        return capacity.minimum + steps * capacity.step
    return next((value for value in capacity.values if requested <= value), requested)


def _allowed(capacity: DeviceCapacity, amount: Fraction) -> bool:
    if amount == capacity.default:
        return True
    if capacity.maximum is not None and amount > capacity.maximum:
        return False
    if capacity.minimum is not None and capacity.step is not None:
        return (amount - capacity.minimum) % capacity.step == 0
    return not capacity.values or amount in capacity.values
