"""Follow what the node itself says about its GPUs: whether its labels select it, and which GPUs are cordoned.

A GPU is cordoned by the node's annotation `hami.io/device-cordon`, a comma list of UUIDs, as in HAMi.
"""

import logging

from lamina.agent.offer import Offer
from lamina.dialects.config import Config
from lamina.model.gpus import CORDON, cordoned
from lamina.ports.kube import NODES, Kube, Object, follow

log = logging.getLogger(__name__)

_OFFERS = ("offers GPUs", "have")
_OFFERS_NOTHING = ("offers no GPUs", "lack")


async def follow_node(kube: Kube, node: str, config: Config, offer: Offer) -> None:
    """Let the offer follow the node `node`, for ever."""
    wanted = ",".join(f"{key}={value}" for key, value in sorted(config.node_selector.items()))
    selected: bool | None = None
    kept_free: frozenset[str] | None = None
    async for told in follow(kube, NODES, fields=f"metadata.name={node}", trim=_read):
        if told.kind not in ("ADDED", "MODIFIED", "DELETED"):
            continue
        meta = told.object["metadata"]
        now = told.kind != "DELETED" and config.selects(meta.get("labels") or {})
        if now != selected and wanted:
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
    return {"metadata": trimmed | {"annotations": {CORDON: (meta.get("annotations") or {}).get(CORDON, "")}}}
