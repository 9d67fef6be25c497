"""What one pod holds: its grants, and the reservation for a grant that is being created."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from lamina.core.grants import Grant
from lamina.core.ledger import NOTHING, Taken, add, taken_by
from lamina.ledger.pod_stages import PodState, Stage


class GrantRecord(NamedTuple):
    """A `Grant` object: where it is stored, and its contents."""

    uid: str
    namespace: str
    name: str
    grant: Grant


class Reservation(NamedTuple):
    """What is reserved of a node's GPUs, by UUID, until `until` (seconds of the monotonic clock)."""

    node: str
    taken: Mapping[str, Taken]
    until: float


class Hold(NamedTuple):
    """Room that is kept for a pod which has no grant yet. `until` is by the monotonic clock, infinite if not known."""

    uid: str
    namespace: str
    pod: str
    node: str
    taken: Mapping[str, Taken]
    until: float
    nominated: bool = False
    """Whether pods are evicted for it, so that part of the room is still theirs."""
    uncounted: Mapping[str, Taken] = MappingProxyType({})
    """The part that no pod holds, and that the sums of the ledger do not count."""


@dataclass
class PodHolding:
    """What one pod holds of GPUs. A grant on the reservation's node fulfills that reservation: both count once."""

    namespace: str
    pod: str
    grants: dict[str, GrantRecord] = field(default_factory=dict)
    reservation: Reservation | None = None
    uncertain: bool = False
    """Whether the pod may have been bound with another grant than those here, all of which are deleted."""
    unconfirmed_since: float | None = None
    """Since when the grants contradict what is known of the pod."""

    def by_node(self) -> dict[str, dict[str, Taken]]:
        """What the pod holds now."""
        held: dict[str, dict[str, Taken]] = {}
        for record in self.grants.values():
            add(held.setdefault(record.grant.node, {}), taken_by(record.grant.containers))
        if self.reservation is not None:
            on_node = held.setdefault(self.reservation.node, {})
            for gpu, taken in self.reservation.taken.items():
                on_node[gpu] = on_node.get(gpu, NOTHING).at_least(taken)
        return held

    def expired(self, now: float) -> bool:
        """Whether the time of the reservation is up."""
        return self.reservation is not None and self.reservation.until <= now

    def agrees_with(self, pod: PodState) -> bool:
        """Whether the pod runs on the one node that its grants name."""
        nodes = {record.grant.node for record in self.grants.values()}
        return pod.stage is Stage.BOUND and nodes == {pod.node}
