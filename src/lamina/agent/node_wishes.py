"""Follow what the node itself says about its GPUs: whether its labels select it, and which GPUs are cordoned.

A node that becomes somebody else's offers nothing from then on, and loses its marks, before its agent is taken away.

What the node carries of the marks that the agent keeps is noted too.

A GPU is cordoned by the node's annotation `hami.io/device-cordon`, a comma list of UUIDs, as in HAMi.
"""

import logging

from lamina.agent.current import Current
from lamina.agent.marks.wanted import NFD_OWNS, REGISTERS, Seen
from lamina.agent.offer import Offer
from lamina.dialects.config import Config
from lamina.model.gpus import CORDON, cordoned
from lamina.model.nodes import kept_out
from lamina.ports.kube import NODES, Kube, Object, follow

log = logging.getLogger(__name__)

_ANNOTATIONS = frozenset({CORDON, NFD_OWNS, *REGISTERS})
_OFFERS = ("offers GPUs", "have")
_OFFERS_NOTHING = ("offers no GPUs", "lack")


async def follow_node(kube: Kube, node: str, config: Config, offer: Offer, seen: Current[Seen | None]) -> None:
    """Let the offer and `seen` follow the node `node`, for ever."""
    wanted = ",".join(f"{key}={value}" for key, value in sorted(config.node_selector.items()))
    selected = None if wanted or not config.enabled else True
    kept_free: frozenset[str] | None = None
    async for told in follow(kube, NODES, fields=f"metadata.name={node}", trim=_read):
        if told.kind not in ("ADDED", "MODIFIED", "DELETED"):
            continue
        meta = told.object["metadata"]
        seen.set(None if told.kind == "DELETED" else seen_in(told.object))
        labels = (meta.get("labels") if told.kind != "DELETED" else None) or {}
        now = config.selects(labels) and not kept_out(labels)
        if now != selected:
            if config.enabled and kept_out(labels):
                log.info("Node %s is somebody else's by its labels", node)
            elif config.enabled:
                log.info("Node %s %s: its labels %s %s", node, *(_OFFERS if now else _OFFERS_NOTHING), wanted)
            selected = now
            offer.select(now)
        if (named := cordoned(meta.get("annotations"))) != kept_free:
            if named or kept_free:
                log.info("Cordoned on node %s: %s", node, ", ".join(sorted(named)) or "no GPU")
            kept_free = named
            offer.cordon(named)


def _read(obj: Object) -> Object:
    meta = obj["metadata"]
    trimmed = {key: meta[key] for key in ("name", "uid", "resourceVersion", "labels") if key in meta}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key in _ANNOTATIONS}
    status = {key: value for key, value in (obj.get("status") or {}).items() if key in ("capacity", "allocatable")}
    return {"metadata": trimmed | {"annotations": annotations}, "status": status}


def seen_in(obj: Object) -> Seen:
    """What matters of a Node object for its marks."""
    meta, status = obj["metadata"], obj.get("status") or {}
    return Seen(
        uid=meta["uid"],
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        capacity=status.get("capacity") or {},
        allocatable=status.get("allocatable") or {},
    )
