"""What one pod holds: its grants, and the reservation for a grant that is being made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.control.stages import PodState, Stage
from lamina.model.grants import Grant
from lamina.model.ledger import NOTHING, Taken, taken_by


class GrantRecord(NamedTuple):
    """A `Grant` object: where it is, and what it says."""

    uid: str
    namespace: str
    name: str
    grant: Grant


class Reservation(NamedTuple):
    """What is to be taken of a node's GPUs, by UUID, until `until` (seconds of a monotonic clock)."""

    node: str
    taken: Mapping[str, Taken]
    until: float


@dataclass
class Claim:
    """One pod's hold on GPUs. A grant on the reservation's node is that reservation come true: it counts once."""

    namespace: str
    pod: str
    grants: dict[str, GrantRecord] = field(default_factory=dict)
    reservation: Reservation | None = None
    held: dict[str, dict[str, Taken]] = field(default_factory=dict)
    """What was last counted, by node and GPU."""
    doubted_since: float | None = None

    def holdings(self) -> dict[str, dict[str, Taken]]:
        """What the pod holds now, by node and GPU."""
        held: dict[str, dict[str, Taken]] = {}
        for record in self.grants.values():
            _add(held.setdefault(record.grant.node, {}), taken_by(record.grant.containers))
        if self.reservation is not None:
            here = held.setdefault(self.reservation.node, {})
            for gpu, taken in self.reservation.taken.items():
                here[gpu] = here.get(gpu, NOTHING).at_least(taken)
        return held

    def lapsed(self, now: float) -> bool:
        return self.reservation is not None and self.reservation.until <= now

    def agrees_with(self, pod: PodState) -> bool:
        """Whether the pod runs where its one grant says."""
        nodes = {record.grant.node for record in self.grants.values()}
        return pod.stage is Stage.BOUND and nodes == {pod.node}


def _add(into: dict[str, Taken], more: Mapping[str, Taken]) -> None:
    for gpu, taken in more.items():
        into[gpu] = into.get(gpu, NOTHING).plus(taken)
