"""The objects of a cluster in which pods run and others wait: a `FakeKube` that also has what was there before."""

from collections.abc import Iterable

import msgspec

from bench.scheduler import cluster
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Object, Resource
from lamina.ports.kube.fake import FakeKube


class ClusterKube(FakeKube):
    """What was there before is only listed: running pods, their grants, nodes and inventories, encoded in advance."""

    def __init__(self, nodes: int, pods: int) -> None:
        super().__init__()
        self._listed: dict[Resource, list[bytes]] = {
            resource: [msgspec.json.encode(obj) for obj in objects]
            for resource, objects in _before(nodes, pods).items()
        }

    async def encoded_list(
        self, resource: Resource, namespace: str, *, labels: str, fields: str
    ) -> tuple[list[bytes], str]:
        """The objects in JSON, and the version of the list. A selection is among the new ones only."""
        own = await self.list(resource, namespace=namespace, labels=labels, fields=fields)
        before = [] if labels or fields else self._listed.get(resource, [])
        return [*before, *map(msgspec.json.encode, own.items)], own.version


def _before(nodes: int, pods: int) -> dict[Resource, Iterable[Object]]:
    return {
        INVENTORIES: cluster.inventories(nodes),
        NODES: cluster.hosts(nodes),
        PODS: (pod for pod, _ in cluster.running(nodes, pods)),
        GRANTS: (grant for _, grant in cluster.running(nodes, pods)),
    }
