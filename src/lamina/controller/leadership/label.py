"""The label that directs Services to the leader's pod, and to no other.

Kubelet's readiness would direct Services as well, but then a standby would never be ready: a rollout would never end,
and a PodDisruptionBudget would prevent every drain. The label decides nothing, since a replica that does not lead
refuses every request. It is checked regularly, because a former leader may remove it late, and without it the Service
has no endpoint.
"""

import logging
from collections.abc import Callable

from lamina.core.component_names import LEADER_LABEL
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, Kube, NotFound
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_POLL_S = 0.1
_RETRY_S = 2.0
"""After a failure."""
_CHECK_S = 10.0
"""How often the leader checks that the label is still there."""


class LeaderLabel:
    """The label of the replica whose pod is named `pod`. A replica without such a pod needs no label."""

    def __init__(self, kube: Kube, clock: Clock, pod: str, *, check_s: float = _CHECK_S) -> None:
        self._kube = kube
        self._clock = clock
        self._pod = pod
        self._check_s = check_s

    async def run(self, leading: Callable[[], bool]) -> None:
        """Keep the label up to date until canceled. A pod starts without it."""
        labeled, check_at = False, 0.0

        async def update() -> None:
            nonlocal labeled, check_at
            leads = leading()
            if leads != labeled or (leads and self._clock.monotonic() >= check_at):
                await self.update(leads)
                labeled, check_at = leads, self._clock.monotonic() + self._check_s

        failures = FailureLog(log, "Cannot write the leader label: %s")
        await poll(update, self._clock, every_s=_POLL_S, delay_s=_POLL_S, retry_s=_RETRY_S, failures=failures)

    async def update(self, leading: bool) -> None:
        """Label this replica's pod, and remove the label from others, whose replicas may be dead. Raises Outside."""
        labeled = {
            pod["metadata"]["name"]: pod["metadata"]["labels"][LEADER_LABEL]
            for pod in (await self._kube.list(PODS, namespace=self._kube.lamina_namespace, labels=LEADER_LABEL)).items
        }
        if (labeled.get(self._pod) == "true") != leading:
            await self._label(self._pod, leading)
        for pod in labeled.keys() - {self._pod} if leading else ():
            await self._label(pod, False)

    async def _label(self, pod: str, leading: bool) -> None:
        body = {"metadata": {"labels": {LEADER_LABEL: "true" if leading else None}}}
        try:
            await self._kube.patch(PODS, pod, body, namespace=self._kube.lamina_namespace)
        except NotFound:
            return
