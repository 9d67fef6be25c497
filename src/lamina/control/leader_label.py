"""The label that leads Services to the leader: on its pod, and on no other one.

Kubelet's readiness would lead there too, but then a standby is never ready: a rollout would never end, and a budget of
disruptions would let no node be drained. The label decides nothing; a replica that does not lead refuses whatever is
asked of it. It is looked at again and again, since a replica that led before may take it away late, and without it no
Service leads anywhere.
"""

import asyncio
import logging
from collections.abc import Callable

from lamina.dialects.config import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.errors import Outside
from lamina.ports.kube import PODS, Kube, NotFound

log = logging.getLogger(__name__)

LABEL = "lamina.dev/leader"
_LOOK_S = 0.1
_AGAIN_S = 2.0
"""After a failure."""
_HELD_S = 10.0
"""How often the leader sees to it that the label is still there."""


class LeaderLabel:
    """Of the replica whose pod is named `pod`; where there is none of that name nobody needs the label."""

    def __init__(self, kube: Kube, pod: str, *, held_s: float = _HELD_S) -> None:
        self._kube = kube
        self._pod = pod
        self._held_s = held_s

    async def run(self, leading: Callable[[], bool]) -> None:
        """Keep the label true until cancelled. A pod begins without it."""
        told, due, clock = False, 0.0, asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(_LOOK_S)
            now = leading()
            if now == told and not (now and clock() >= due):
                continue
            try:
                await self.tell(now)
                told, due = now, clock() + self._held_s
            except Outside as error:
                log.warning("The label of the leader could not be written: %s", error)
                await asyncio.sleep(_AGAIN_S)

    async def tell(self, leading: bool) -> None:
        """Label the own pod, and take the label from others, whose replicas may be dead. Raises Outside."""
        labelled = {
            pod["metadata"]["name"]: pod["metadata"]["labels"][LABEL]
            for pod in (await self._kube.list(PODS, namespace=NAMESPACE, labels=LABEL)).items
        }
        if (labelled.get(self._pod) == "true") != leading:
            await self._label(self._pod, leading)
        for pod in labelled.keys() - {self._pod} if leading else ():
            await self._label(pod, False)

    async def _label(self, pod: str, leading: bool) -> None:
        body = {"metadata": {"labels": {LABEL: "true" if leading else None}}}
        try:
            await self._kube.patch(PODS, pod, body, namespace=NAMESPACE)
        except NotFound:
            return
