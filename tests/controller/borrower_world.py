"""A workload on one node whose pods borrow memory, with its agent and a controller that evicts borrowers."""

from typing import Any

from msgspec import structs

from lamina.configuration import Config
from lamina.controller.eviction.borrowers import BorrowerEvictions
from lamina.controller.eviction.notices import NoticedEvictions
from lamina.core.evictions import DisplacedBorrower
from lamina.core.gpus import Inventory
from lamina.ports.kube import PODS
from tests.controller.idle_world import IdleCluster
from tests.worlds.clusters import inventory

ON = "seconds: 30, noticeSeconds: 60, namespaces: [default]"


class Borrowing(IdleCluster):
    """`displaced` are the pods that the agent lists by name."""

    section = "borrowers"

    def __init__(self, settings: str = ON, *, leads: bool = True) -> None:
        super().__init__(settings, leads=leads)
        self.displaced: dict[str, int] = {}

    def inventory(self, config: Config) -> Inventory:
        listed = tuple(DisplacedBorrower(pod_uid=uid, since=since) for uid, since in self.displaced.items())
        return structs.replace(inventory(gpus=2), displaced=listed)

    async def displace(self, name: str) -> None:
        uid = (await self.kube.get(PODS, name, namespace="default"))["metadata"]["uid"]
        self.displaced[uid] = int(self.clock.wall())

    async def look(self, seconds: float = 0.0, *, kube: Any = None) -> None:
        """A replica that has just become the leader looks once."""
        await self.clock.sleep(seconds)
        await (await self.evictions(kube)).reconcile()

    async def evictions(self, kube: Any = None) -> NoticedEvictions:
        return BorrowerEvictions(*await self.replica(kube))
