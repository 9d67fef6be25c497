"""Documents of small clusters."""

from lamina.core.gpus import Inventory
from lamina.core.grants import ContainerGrant, Share
from lamina.core.requests import PodRequest
from lamina.ledger.grant_objects import grant_object
from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.view import NodeCondition, document_of
from lamina.ports.kube import Object
from lamina.report import cluster_reader
from tests.worlds.clusters import cluster, container, pod

READY = {"n": NodeCondition()}


async def shown(*objects: Object | Inventory, conditions: dict[str, NodeCondition] = READY) -> ClusterDocument:
    return document_of(await cluster_reader.read(await cluster(*objects)), conditions)


def held(name: str, *shares: Share, priority: int | None = None, **limits: int) -> tuple[Object, Object]:
    """A running pod and its grant of these shares, which have a priority on their GPU if there is one."""
    runs = pod(name, container(**(limits or {"gpu": 1})), node="n")
    containers = (ContainerGrant(name="main", shares=shares, priority=priority),)
    return runs, grant_object(runs, "n", PodRequest(dialect="hami", containers=()), containers)
