"""Keeps the node's Inventory object as advertised: written when that changes, and when other clients change it."""

import asyncio
import logging

from lamina.agent.state.cluster import ClusterClient, SpecVersion, spec_version
from lamina.agent.state.observed import Observable
from lamina.core.gpus import Inventory
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED
from lamina.ports.polling import FailureLog

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""From one restoration to the next: two clients that write different Inventories do not occupy the API server."""


class InventoryPublisher:
    """Writes each state of the inventory. A write that fails is repeated with the newest state."""

    def __init__(self, cluster: ClusterClient, inventory: Observable[Inventory | None], clock: Clock) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._clock = clock
        self._writing = asyncio.Lock()
        self._written: SpecVersion | None = None

    async def run(self) -> None:
        version, failures = -1, FailureLog(log, "Cannot write the Inventory: %s")
        while True:
            version, wanted = await self._inventory.after(version)
            while wanted is not None:
                try:
                    await self._write(wanted)
                    failures.succeeded()
                    break
                except Outside as error:
                    await self._clock.sleep(failures.failed(error))
                    version, wanted = await self._inventory.after(-1)

    async def has_written(self, obj: Object) -> bool:
        """Whether this Inventory's spec is what was written last, or older. So it is before the first write, which is
        about to come.

        Specs are not compared: the definition of an older version drops fields, and rewriting them would not help.
        """
        async with self._writing:  # the watch may report a write before its answer is here
            written, found = self._written, spec_version(obj)
        return written is None or (found.uid == written.uid and found.generation <= written.generation)

    async def _write(self, wanted: Inventory) -> None:
        async with self._writing:
            result = await self._cluster.write_inventory(wanted)
            self._written = result.version
        if result.changed:
            log.info("Published the inventory; GPUs: %d", len(wanted.gpus))


class InventoryWatch:
    """Has the Inventory written again when another client deletes its object or changes the spec."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        node: str,
        publisher: InventoryPublisher,
        inventory: Observable[Inventory | None],
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._node = node
        self._publisher = publisher
        self._inventory = inventory

    async def run(self) -> None:
        async for kind, obj in follow(self._kube, self._clock, INVENTORIES, fields=f"metadata.name={self._node}"):
            if kind == SYNCED or (kind != DELETED and await self._publisher.has_written(obj)):
                continue
            change = "deleted" if kind == DELETED else "changed by another client"
            log.warning("The Inventory of node %s was %s; writing it again", self._node, change)
            self._inventory.notify()
            await self._clock.sleep(AGAIN_S)
