"""Room of one node that is held for one pod until a moment: who, where, what, until when, and why.

A pod has one hold at a time, which counts in the sums of the ledger as a grant does and gives way to a grant on its
node. A release names the reason of the hold, and leaves alone what is held for another reason since. Room for
nominated pods is the exception: other pods still have a part of it, so the ledger does not count it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from lamina.core.grants import ContainerGrant
from lamina.core.ledger import Taken, taken_by

GRANT_S = 60.0
"""How long a hold waits for its grant. An attempt to bind is given up well before."""


class Why(Enum):
    """What the room is held for."""

    BIND = auto()
    """An answer named the node, and kube-scheduler is expected to bind the pod there."""
    GRANT = auto()
    """A grant is being written."""
    RESIZE = auto()
    """The grant is being replaced with one that has larger shares."""
    PLAN = auto()
    """A place in the plan of a pod group, none of whose members is being bound."""
    GROUP = auto()
    """A place in a pod group whose members are being bound."""
    NOMINATION = auto()
    """The pods that were evicted for the pod are terminating."""


class Hold(NamedTuple):
    """`taken` of the GPUs of the node, by UUID, is held until `until`, in seconds of the monotonic clock."""

    uid: str
    namespace: str
    pod: str
    node: str
    taken: Mapping[str, Taken]
    until: float
    """Infinite if not known."""
    why: Why
    uncounted: Mapping[str, Taken] = MappingProxyType({})
    """The part of a nominated pod's room that no pod holds, and that the sums of the ledger do not count."""

    @classmethod
    def of_shares(
        cls,
        uid: str,
        namespace: str,
        pod: str,
        node: str,
        containers: Iterable[ContainerGrant],
        now: float,
        why: Why = Why.GRANT,
    ) -> "Hold":
        """What these containers take, held from `now` for as long as a grant may need."""
        return cls(uid, namespace, pod, node, taken_by(containers), now + GRANT_S, why)
