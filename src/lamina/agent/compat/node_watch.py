"""Watches the Node object: whether its labels select the node, which GPUs are cordoned, and what the agent wrote on it.

A node that its labels assign to another system offers nothing from then on and loses its compatibility labels before
its agent is removed. A GPU is cordoned by the annotation `CORDON` of the node, a
comma-separated list of UUIDs.
"""

import logging

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.core.gpus import CORDON, cordoned
from lamina.core.nodes import kept_out
from lamina.dialects.registry import observed_annotations
from lamina.ports.kube import NODES, Object, follow
from lamina.ports.kube.follow import identity

log = logging.getLogger(__name__)


class NodeWatch:
    """Keeps the node's offer and `observed` as the Node object says."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        observed: Observable[ObservedNode | None],
    ) -> None:
        self._kube = node.kube
        self._clock = node.clock
        self._node = node.node
        self._config = node.config
        self._aside = node.aside
        self._offers = offers
        self._observed = observed
        self._selector = ",".join(f"{key}={value}" for key, value in sorted(self._config.nodes.selector.items()))
        self._selected = None if self._selector or not self._config.enabled else True
        self._cordoned: frozenset[str] | None = None

    async def run(self) -> None:
        async for event in follow(self._kube, self._clock, NODES, fields=f"metadata.name={self._node}", trim=_trim):
            if event.kind in ("ADDED", "MODIFIED", "DELETED"):
                with self._aside.around(NODES.plural, self._node):
                    self._update(event.object, deleted=event.kind == "DELETED")

    def _update(self, node: Object, *, deleted: bool) -> None:
        self._observed.set(None if deleted else observed_node(node))
        meta = node["metadata"]
        labels = {} if deleted else meta.get("labels") or {}
        selected = self._config.selects(labels) and not kept_out(labels)
        if selected != self._selected:
            self._selected = selected
            self._log_selection(selected, excluded=kept_out(labels))
            self._offers.update(selected=selected)
        named = cordoned(meta.get("annotations"))
        if named != self._cordoned:
            if named or self._cordoned:
                log.info("Cordoned GPUs of node %s: %s", self._node, ", ".join(sorted(named)) or "none")
            self._cordoned = named
            self._offers.update(cordoned=frozenset(named))

    def _log_selection(self, selected: bool, *, excluded: bool) -> None:
        if self._config.enabled and excluded:
            log.info("Node %s is assigned to another system by its labels", self._node)
        elif self._config.enabled and selected:
            log.info("Node %s offers GPUs: its labels have %s", self._node, self._selector)
        elif self._config.enabled:
            log.info("Node %s offers no GPUs: its labels lack %s", self._node, self._selector)


def observed_node(obj: Object) -> ObservedNode:
    """The fields of a Node object that the agent uses."""
    meta, status = obj["metadata"], obj.get("status") or {}
    return ObservedNode(
        uid=meta["uid"],
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        capacity=status.get("capacity") or {},
        allocatable=status.get("allocatable") or {},
    )


def _trim(obj: Object) -> Object:
    meta = obj["metadata"]
    kept = {CORDON, *observed_annotations()}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key in kept}
    status = {key: value for key, value in (obj.get("status") or {}).items() if key in ("capacity", "allocatable")}
    return {"metadata": identity(obj) | {"labels": meta.get("labels"), "annotations": annotations}, "status": status}
