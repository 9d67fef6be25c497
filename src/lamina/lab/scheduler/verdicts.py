"""Telling a pod, and whoever looks at it, how scheduling went."""

import logging
from collections.abc import Iterable

from lamina.errors import Outside
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, EventRecorder, Kube, NotFound, PatchKind
from lamina.ports.kube.moments import rfc3339

log = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
ERROR = "SchedulerError"


class Verdicts:
    """Writes events in the name of the scheduler that a pod asked for, and the pod's PodScheduled condition."""

    def __init__(self, kube: Kube, clock: Clock, names: Iterable[str]) -> None:
        self._kube = kube
        self._clock = clock
        self._recorders = {name: EventRecorder(kube, name, now=clock.wall) for name in names}

    async def placed(self, pod: Object, node: str) -> None:
        message = f"Successfully assigned {objects.key(pod)} to {node}"
        await self._recorder(pod).record(PODS, pod, "Scheduled", message)

    async def waits(self, pod: Object, reason: str, message: str) -> None:
        """The pod has to wait; `message` says why. Nothing is written where it says so already, but the event."""
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
            await self._kube.patch(
                PODS,
                objects.name(pod),
                body,
                namespace=objects.namespace(pod),
                kind=PatchKind.STRATEGIC,
                subresource="status",
            )
        except NotFound:
            return
        except Outside as error:
            log.warning("Why pod %s waits could not be written to it: %s", objects.key(pod), error)

    def _recorder(self, pod: Object) -> EventRecorder:
        return self._recorders[str(objects.spec(pod).get("schedulerName"))]
