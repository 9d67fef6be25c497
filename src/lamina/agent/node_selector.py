"""Follow the node's labels, where the configuration selects nodes by them (`nodeSelector: {gpu: "on"}`)."""

import logging

from lamina.agent.offer import Offer
from lamina.dialects.config import Config
from lamina.ports.kube import NODES, Kube, Object, follow

log = logging.getLogger(__name__)

_OFFERS = ("offers GPUs", "have")
_OFFERS_NOTHING = ("offers no GPUs", "lack")


async def follow_labels(kube: Kube, node: str, config: Config, offer: Offer) -> None:
    """Let the offer follow the labels of the node `node`, for ever. Without a selector there is nothing to follow."""
    if not config.node_selector:
        return
    wanted = ",".join(f"{key}={value}" for key, value in sorted(config.node_selector.items()))
    selected: bool | None = None
    async for told in follow(kube, NODES, fields=f"metadata.name={node}", trim=_labels):
        if told.kind not in ("ADDED", "MODIFIED", "DELETED"):
            continue
        labels = told.object["metadata"].get("labels") or {}
        now = told.kind != "DELETED" and config.selects(labels)
        if now != selected:
            log.info("Node %s %s: its labels %s %s", node, *(_OFFERS if now else _OFFERS_NOTHING), wanted)
            selected = now
            offer.select(now)


def _labels(obj: Object) -> Object:
    meta = obj["metadata"]
    return {"metadata": {key: meta[key] for key in ("name", "uid", "resourceVersion", "labels") if key in meta}}
