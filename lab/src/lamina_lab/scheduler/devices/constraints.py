"""Constraints between the devices of one claim."""

from collections.abc import Iterable, Sequence

from lamina_lab.scheduler.devices.model import PoolDevice
from lamina_lab.scheduler.devices.requests import Alternative, Constraint


def satisfied(constraints: Iterable[Constraint], devices: Sequence[tuple[Alternative, PoolDevice]]) -> bool:
    """Whether the devices chosen so far, with the alternatives that they serve, violate none of the constraints.

    A device without the attribute violates every constraint on it.
    """
    return all(_satisfied(constraint, devices) for constraint in constraints)


def _satisfied(constraint: Constraint, devices: Sequence[tuple[Alternative, PoolDevice]]) -> bool:
    concerned = [device for wanted, device in devices if wanted.named_by(constraint.requests)]
    values = [device.attributes.get(constraint.attribute) for device in concerned]
    if None in values:
        return False
    typed = {(type(value), value) for value in values}
    return len(typed) == len(values) if constraint.distinct else len(typed) <= 1
