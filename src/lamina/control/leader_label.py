"""The label that leads Services to the leader: on its pod, and on no other one.

Kubelet's readiness would lead there too, but then a standby is never ready: a rollout would never end, and a budget of
disruptions would let no node be drained. The label decides nothing; a replica that does not lead refuses whatever is
asked of it.
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


class LeaderLabel:
    """Of the replica whose pod is named `pod`; where there is none of that name nobody needs the label."""

    def __init__(self, kube: Kube, pod: str) -> None:
        self._kube = kube
        self._pod = pod

    async def run(self, leading: Callable[[], bool]) -> None:
        """Keep the label true until cancelled. A pod begins without it."""
        told = False
        while True:
            await asyncio.sleep(_LOOK_S)
            now = leading()
            if now == told:
                continue
            try:
                await self.tell(now)
                told = now
            except Outside as error:
                log.warning("The label of the leader could not be written: %s", error)
                await asyncio.sleep(_AGAIN_S)

    async def tell(self, leading: bool) -> None:
        """Label the own pod, and take the label from others, whose replicas may be dead. Raises Outside."""
        await self._label(self._pod, leading)
        if leading:
            for pod in (await self._kube.list(PODS, namespace=NAMESPACE, labels=LABEL)).items:
                if pod["metadata"]["name"] != self._pod:
                    await self._label(pod["metadata"]["name"], False)

    async def _label(self, pod: str, leading: bool) -> None:
        body = {"metadata": {"labels": {LABEL: "true" if leading else None}}}
        try:
            await self._kube.patch(PODS, pod, body, namespace=NAMESPACE)
        except NotFound:
            return
