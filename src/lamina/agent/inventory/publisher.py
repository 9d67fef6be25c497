"""Keeps the node's Inventory object as advertised: written when that changes and when the object was deleted."""

import logging

from lamina.agent.state.cluster import ClusterClient
from lamina.agent.state.observable import Observable
from lamina.errors import Outside
from lamina.model.gpus import Inventory
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, follow
from lamina.ports.polling import FailureLog

log = logging.getLogger(__name__)


class InventoryPublisher:
    """Writes each state of the inventory. A write that fails is repeated with the newest state."""

    def __init__(self, cluster: ClusterClient, inventory: Observable[Inventory | None], clock: Clock) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._clock = clock

    async def run(self) -> None:
        version, failures = -1, FailureLog(log, "Cannot write the Inventory: %s")
        while True:
            version, wanted = await self._inventory.after(version)
            while wanted is not None:
                try:
                    if await self._cluster.write_inventory(wanted):
                        log.info("Published the inventory; GPUs: %d", len(wanted.gpus))
                    failures.succeeded()
                    break
                except Outside as error:
                    await self._clock.sleep(failures.failed(error))
                    version, wanted = await self._inventory.after(-1)


class InventoryDeletionWatch:
    """Has the Inventory written again when its object is deleted."""

    def __init__(self, kube: Kube, clock: Clock, node: str, inventory: Observable[Inventory | None]) -> None:
        self._kube = kube
        self._clock = clock
        self._node = node
        self._inventory = inventory

    async def run(self) -> None:
        async for event in follow(self._kube, self._clock, INVENTORIES, fields=f"metadata.name={self._node}"):
            if event.kind == "DELETED":
                log.warning("The Inventory of node %s was deleted; writing it again", self._node)
                self._inventory.notify()
