"""Reports the result of scheduling: events, and the pod's PodScheduled condition."""

import logging
from collections.abc import Iterable

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, EventRecorder, Kube, NotFound, Object, StrategicPatch
from lamina.ports.kube.moments import rfc3339
from lamina_lab.kubernetes import objects

log = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
ERROR = "SchedulerError"


class SchedulingReporter:
    """Writes events as the scheduler that the pod names, and the pod's PodScheduled condition."""

    def __init__(self, kube: Kube, clock: Clock, names: Iterable[str]) -> None:
        self._kube = kube
        self._clock = clock
        self._recorders = {name: EventRecorder(kube, name, now=clock.wall) for name in names}

    async def placed(self, pod: Object, node: str) -> None:
        message = f"Successfully assigned {objects.key(pod)} to {node}"
        await self._recorder(pod).record(PODS, pod, "Scheduled", message)

    async def waits(self, pod: Object, reason: str, message: str) -> None:
        """The pod stays pending; `message` says why. The condition is written only if it changes."""
        await self._recorder(pod).record(PODS, pod, "FailedScheduling", message, warning=True)
        before = objects.condition(pod, "PodScheduled") or {}
        if (before.get("status"), before.get("reason"), before.get("message")) == ("False", reason, message):
            return
        since = before.get("lastTransitionTime") if before.get("status") == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": since or rfc3339(self._clock.wall()),
        }
        body = {"metadata": {"uid": objects.uid(pod)}, "status": {"conditions": [condition]}}
        try:
            name, namespace = objects.name(pod), objects.namespace(pod)
            await self._kube.patch(PODS, name, StrategicPatch(body), namespace=namespace, subresource="status")
        except NotFound:
            return
        except Outside as error:
            log.warning("Cannot write the PodScheduled condition of pod %s: %s", objects.key(pod), error)

    def _recorder(self, pod: Object) -> EventRecorder:
        return self._recorders[str(objects.spec(pod).get("schedulerName"))]
