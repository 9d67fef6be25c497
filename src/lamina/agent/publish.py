"""Keep the node's Inventory object as the offer says: written when that changes, or when somebody removed it."""

import logging
from collections.abc import Sequence

from lamina.agent.cluster import Cluster
from lamina.agent.current import Current
from lamina.errors import Outside
from lamina.model.gpus import Inventory
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, follow

log = logging.getLogger(__name__)

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


async def publishing(
    cluster: Cluster, inventory: Current[Inventory | None], clock: Clock, *, pauses: Sequence[float] = PAUSES
) -> None:
    """Write each form of the inventory, for ever. What cannot be written is tried again, in its newest form."""
    version, failures = -1, 0
    while True:
        version, wanted = await inventory.after(version)
        while wanted is not None:
            try:
                if await cluster.publish(wanted):
                    log.info("Published %d GPUs", len(wanted.gpus))
                failures = 0
                break
            except Outside as error:
                if failures in (0, 10) or failures % 100 == 0:
                    log.warning("The inventory could not be written: %s", error)
                await clock.sleep(pauses[min(failures, len(pauses) - 1)])
                failures += 1
                version, wanted = await inventory.after(-1)


async def notice_removal(kube: Kube, node: str, inventory: Current[Inventory | None]) -> None:
    """Have the inventory written again when its object is removed."""
    async for told in follow(kube, INVENTORIES, fields=f"metadata.name={node}"):
        if told.kind == "DELETED":
            log.warning("The inventory of %s was removed; it is written again", node)
            inventory.again()
