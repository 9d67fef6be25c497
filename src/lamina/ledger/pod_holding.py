"""What one pod holds: its grants, and the hold for a grant that is expected."""

from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.core.grants import Grant
from lamina.core.ledger import NOTHING, Taken, add, taken_by
from lamina.ledger.holds import Hold
from lamina.ledger.pod_stages import PodState, Stage


class GrantRecord(NamedTuple):
    """A `Grant` object: where it is stored, and its contents."""

    uid: str
    namespace: str
    name: str
    grant: Grant


@dataclass
class PodHolding:
    """What one pod holds of GPUs. A grant on the node of the hold takes its place: both count once."""

    namespace: str
    pod: str
    grants: dict[str, GrantRecord] = field(default_factory=dict)
    hold: Hold | None = None
    uncertain: bool = False
    """Whether the pod may have been bound with a grant that was not observed, while all grants here are deleted."""
    unconfirmed_since: float | None = None
    """Since when the grants contradict what is known of the pod."""

    def by_node(self) -> dict[str, dict[str, Taken]]:
        """What the pod holds now."""
        held: dict[str, dict[str, Taken]] = {}
        for record in self.grants.values():
            add(held.setdefault(record.grant.node, {}), taken_by(record.grant.containers))
        if self.hold is not None:
            on_node = held.setdefault(self.hold.node, {})
            for gpu, taken in self.hold.taken.items():
                on_node[gpu] = on_node.get(gpu, NOTHING).at_least(taken)
        return held

    def agrees_with(self, pod: PodState) -> bool:
        """Whether the pod runs on the one node that its grants name."""
        nodes = {record.grant.node for record in self.grants.values()}
        return pod.stage is Stage.BOUND and nodes == {pod.node}
