"""What this replica writes, until a watch reports it.

A watch reports the writes of all replicas in the order in which the API server accepted them. So once it reports a
write of this replica, it has reported everything that was written before that write began. That covers updates of
grants by other replicas, which resize pods: they come in the same order. This replica's own updates are not noted. They
differ from earlier versions of the grant only in the revision, and a missing note never does harm: nodes are read one
by one until the watches have reported a new grant.
"""

from collections import OrderedDict
from dataclasses import dataclass

from lamina.ports.kube import GRANTS, PODS, Resource

_MAX_WRITES = 1000
"""Of each resource; the oldest is forgotten first."""


@dataclass
class _Write:
    """`written` and `reported` identify the write: the UID of a new object, the node of a bound pod."""

    epoch: int
    written: str = ""
    reported: str = ""


class WriteBarrier:
    """Grants and bindings by namespace and name, each with the epoch of turns in which it began."""

    def __init__(self) -> None:
        self._writes: dict[Resource, OrderedDict[str, _Write]] = {GRANTS: OrderedDict(), PODS: OrderedDict()}
        self._reached = dict.fromkeys(self._writes, 0)
        """The last epoch in which a write began that was reported."""

    def begin(self, resource: Resource, name: str, epoch: int) -> None:
        """A write begins; what was reported before it does not count."""
        writes = self._writes[resource]
        writes.pop(name, None)
        writes[name] = _Write(epoch)
        if len(writes) > _MAX_WRITES:
            writes.popitem(last=False)

    def succeeded(self, resource: Resource, name: str, written: str) -> None:
        """The API server has accepted the write."""
        if (write := self._writes[resource].get(name)) is not None:
            write.written = written
            self._settle(resource, name, write)

    def report(self, resource: Resource, name: str, reported: str) -> None:
        """A watch reports the object. Called only for what watches report, in their order."""
        if (write := self._writes[resource].get(name)) is not None:
            write.reported = reported
            self._settle(resource, name, write)

    def reached(self, epoch: int) -> bool:
        """Whether the watches have reported all grants and pods that were written before the epoch began."""
        return all(last >= epoch for last in self._reached.values())

    def _settle(self, resource: Resource, name: str, write: _Write) -> None:
        if write.written and write.written == write.reported:
            del self._writes[resource][name]
            self._reached[resource] = max(self._reached[resource], write.epoch)
