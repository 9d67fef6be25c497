"""Which GPUs pods have by the device plugins. Offers and preparation ask the same, so no claim is sent to a GPU that it
then waits for.

The record has the GPUs of containers that have been prepared. A pod that is bound and waits for its start has a grant
only, which is read once: the GPUs of a grant do not change.
"""

from collections.abc import Mapping, Set

from lamina.agent.context import NodeContext
from lamina.agent.devices.usage_by_gpu import DevicesInUse, devices_in_use
from lamina.agent.inventory.advertisement import Advertisement
from lamina.errors import NotYet, Outside
from lamina.ports.kube import GRANTS


class Doors:
    """What the pods of one node have. The watch of pods says which there are."""

    def __init__(self, node: NodeContext, advertisement: Advertisement) -> None:
        self._node = node
        self._advertisement = advertisement
        self._unread: dict[str, tuple[str, str]] = {}
        """Pods whose grants have not been read, by UID."""
        self._granted: dict[str, Mapping[str, str]] = {}
        """By UID of the pod, the GPUs that its grant names, each with the pod."""
        self.synced = False
        """Whether all pods of the node have been observed."""

    def observe(self, uid: str, namespace: str, name: str) -> None:
        """A pod that asks for devices of the plugins is on the node, and has not ended."""
        if uid not in self._granted:
            self._unread[uid] = (namespace, name)

    def observe_end(self, uid: str) -> None:
        self._unread.pop(uid, None)
        self._granted.pop(uid, None)

    async def look(self) -> None:
        """Read the grants of new pods. Raises Outside."""
        for uid, (namespace, name) in list(self._unread.items()):
            found: Mapping[str, str] = {}
            with self._node.aside.around(GRANTS.plural, f"{namespace}/{name}", passing=Outside):
                if grant := await self._node.cluster.get_grant(namespace, name, uid):
                    shares = (share for container in grant.containers for share in container.shares)
                    found = {share.gpu: f"{namespace}/{name}" for share in shares}
            if self._unread.pop(uid, None):
                self._granted[uid] = found

    @property
    def _others(self) -> DevicesInUse:
        return devices_in_use(self._node.record.allocations, self._advertisement.state.mode)

    @property
    def in_use(self) -> Set[str]:
        """The UUIDs of the GPUs and MIG devices."""
        return {*self._others.gpus, *self._holders}

    @property
    def _holders(self) -> Mapping[str, str]:
        return {gpu: pod for granted in self._granted.values() for gpu, pod in granted.items()}

    def require_unused(self, unit: str) -> None:
        """Raises NotYet with what has the GPU or MIG device."""
        if not self.synced:
            raise NotYet("the agent has not read the pods of the node yet; the claim waits for that")
        if unit in self.in_use:
            pod = self._holders.get(unit, "")
            holder = f" by pod {pod}" if pod else ""
            raise NotYet(f"{unit} is in use{holder} through the device plugin; the claim waits until that ends")
