"""Which nodes offer GPUs that kubelet allocates itself: all that admission knows of the cluster."""

import asyncio
from collections.abc import Collection

from lamina.admission.review import Demand, refusal_of
from lamina.core.gpus import Inventory
from lamina.core.objects import read_inventory
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED
from lamina.ports.set_aside import SetAside


class NativeOffers:
    """Reads the inventories of all nodes, and keeps those with such GPUs."""

    def __init__(self, kube: Kube, clock: Clock, set_aside: SetAside) -> None:
        self._kube = kube
        self._clock = clock
        self._set_aside = set_aside
        self._by_node: dict[str, Inventory] = {}
        self.synced = asyncio.Event()
        """Set once all inventories have been read."""

    async def follow(self) -> None:
        """Keep up with the inventories until canceled."""
        async for kind, obj in follow(self._kube, self._clock, INVENTORIES, trim=_without_gpus):
            if kind == SYNCED:
                self.synced.set()
            else:
                self._observe(kind, obj)

    def refusal(self, demand: Demand) -> str:
        """Why the cluster does not admit the demand, as a sentence, or nothing."""
        return refusal_of(demand, ready=self.synced.is_set(), offered=self._are_offered)

    def _observe(self, kind: str, obj: Object) -> None:
        """An inventory that cannot be read offers nothing, whatever an earlier version offered."""
        node = obj["metadata"]["name"]
        self._by_node.pop(node, None)
        if kind == DELETED:
            return
        with self._set_aside.around(INVENTORIES.plural, node):
            inventory = read_inventory(obj)
            if inventory.native_resources:
                self._by_node[node] = inventory

    def _are_offered(self, resources: Collection[str]) -> bool:
        return any(each.offers_native_devices(resources) for each in self._by_node.values())


def _without_gpus(obj: Object) -> Object:
    """An inventory without what admission does not use, which is most of it."""
    spec = obj.get("spec")
    kept = {key: spec[key] for key in ("node", "nativeResources") if key in spec} if isinstance(spec, dict) else spec
    return {"metadata": obj["metadata"], "spec": kept}
