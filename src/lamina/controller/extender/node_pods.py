"""The pods of nodes, as those see them that are to evict some."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime

from lamina.controller.extender.scheduler_accounting import priority_of
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_stages import Stage
from lamina.placement.eviction.victims import Victim
from lamina.ports.kube import PODS, Kube, Object

_CONCURRENT_NODES = 16
"""How many nodes' pods are listed at the same time."""


async def list_pods(kube: Kube, nodes: Collection[str]) -> dict[str, dict[str, Object]]:
    """The pods of these nodes, by node and UID. Raises Outside."""
    limit = asyncio.Semaphore(_CONCURRENT_NODES)

    async def pods_of(node: str) -> dict[str, Object]:
        async with limit:
            pods = (await kube.list(PODS, fields=f"spec.nodeName={node}")).items
        return {str(pod["metadata"]["uid"]): pod for pod in pods}

    return dict(zip(nodes, await asyncio.gather(*map(pods_of, nodes)), strict=True))


def leaving(ledger: Ledger, node: str, pods: Mapping[str, Object]) -> frozenset[str]:
    """The UIDs of pods that terminate, and of pods that are gone, but hold room until a watch reports it or their
    processes have ended."""
    terminating = frozenset(uid for uid, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))
    held = (uid for uid in ledger.totals.pods_on(node) if uid not in pods)
    return terminating.union(uid for uid in held if ledger.pod(uid).stage >= Stage.BOUND)


def victim_of(pod: Object) -> Victim:
    """The pod as others are compared with it."""
    started = (pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp")
    seconds = datetime.fromisoformat(started).timestamp() if started else 0.0
    return Victim(str(pod["metadata"]["uid"]), priority_of(pod), seconds)
