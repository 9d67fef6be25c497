"""A cluster as one reading of its API tells it: pods, grants, and what is free on each node.

`lamina pods` and `lamina why` work out the same sums with the same code as the control part, so that what they say and
what decides about the pod agree. They need no more than the right to read.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from lamina.cli.counting import missing
from lamina.control.grant_objects import grant_record, inventory_of
from lamina.control.ledger import Ledger
from lamina.control.quotas import Quotas, asked, excess
from lamina.control.stages import pod_state
from lamina.control.unrecorded import asked_by
from lamina.dialects import config as configuration
from lamina.dialects import parse
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.gpus import Inventory
from lamina.model.grants import Grant
from lamina.model.requests import PodRequest
from lamina.placement import Explanation, NodeState, explain
from lamina.ports.kube import CONFIG_MAPS, GRANTS, INVENTORIES, PODS, RESOURCE_QUOTAS, Kube, NotFound, Object

log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass
class Cluster:
    """`grants` are keyed by the UID of their pod, `inventories` by node."""

    config: Config
    pods: list[Object]
    grants: Mapping[str, Grant]
    inventories: Mapping[str, Inventory]
    ledger: Ledger
    quotas: Quotas = field(default_factory=Quotas)
    _explained: dict[PodRequest, Explanation] = field(default_factory=dict, repr=False)

    def explain(self, pod: Object) -> Explanation | None:
        """Where the pod fits and why not elsewhere; None where it asks no GPU. Raises BadInput as admission does."""
        request = parse(pod, self.config)
        if request is None:
            return None
        uid = pod["metadata"]["uid"]
        counted = {
            name: missing(pod, inventory, self.pods)
            for name, inventory in self.inventories.items()
            if inventory.offers_plainly(request.plain)
        }
        if self.ledger.grants_of(uid):
            return explain(request, [self._node(name, without=uid) for name in sorted(self.inventories)], counted)
        # Replicas that hold nothing ask the same of the same nodes: one search answers for all of them.
        if request not in self._explained:
            self._explained[request] = explain(request, self._nodes, counted)
        return self._explained[request]

    def over_quota(self, pod: Object) -> str:
        """The sentence that says which quota of its namespace the pod exceeds, or nothing. Raises BadInput."""
        request = parse(pod, self.config)
        if request is None:
            return ""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        quotas = self.quotas.of(namespace, self.config)
        return excess(quotas, lambda: self.ledger.taken_in(namespace, without=uid), asked(request), self.config)

    @cached_property
    def _nodes(self) -> list[NodeState]:
        """All nodes as a pod finds them that holds nothing."""
        return [self._node(name, without="") for name in sorted(self.inventories)]

    def _node(self, name: str, *, without: str) -> NodeState:
        taken = self.ledger.taken(name, without=without)
        return NodeState.of(name, self.inventories[name], taken, rules=self.config.mig_rules)


async def read(kube: Kube) -> Cluster:
    """Read all of it. Raises BadInput where Lamina is not installed."""
    config = await _configuration(kube)
    try:
        inventories = list(_readable(inventory_of, (await kube.list(INVENTORIES)).items))
        records = list(_readable(grant_record, (await kube.list(GRANTS)).items))
    except NotFound as error:
        raise BadInput("Lamina is not installed in this cluster: it does not know inventories.lamina.dev") from error
    pods = (await kube.list(PODS)).items
    quotas = Quotas()
    for quota in (await kube.list(RESOURCE_QUOTAS)).items:
        quotas.seen(quota)
    ledger = Ledger()
    now = time.monotonic()
    for inventory in inventories:
        ledger.inventory_seen(inventory)
    for pod in pods:
        ledger.pod_seen(pod["metadata"]["uid"], pod_state(pod), now, asked_by(pod, config))
    alive = {pod["metadata"]["uid"] for pod in pods}
    for record in records:
        if record.grant.pod_uid in alive:
            ledger.grant_seen(record)
    return Cluster(
        config=config,
        pods=pods,
        grants={record.grant.pod_uid: record.grant for record in records},
        inventories={inventory.node: inventory for inventory in inventories},
        ledger=ledger,
        quotas=quotas,
    )


async def _configuration(kube: Kube) -> Config:
    try:
        found = await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    except NotFound:
        return configuration.DEFAULT
    return configuration.load((found.get("data") or {}).get("lamina.yaml", ""), "ConfigMap lamina-system/lamina")


def _readable(read: Callable[[Object], _T], items: list[Object]) -> Iterator[_T]:
    """What the control part understands of these objects; of the others it says why it leaves them out."""
    for item in items:
        try:
            yield read(item)
        except BadInput as problem:
            log.warning("%s", problem)
