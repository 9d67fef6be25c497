"""Events on objects: what people see in `kubectl describe`. The same event again raises its count."""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable

from lamina.errors import LaminaError, Outside
from lamina.ports.kube.errors import AlreadyExists, NotFound
from lamina.ports.kube.moments import rfc3339
from lamina.ports.kube.protocol import Kube, Object
from lamina.ports.kube.resources import EVENTS, Resource

log = logging.getLogger(__name__)

_REMEMBERED = 4096
_MAX_MESSAGE = 1024
"""Characters of a message that the API accepts."""


class EventRecorder:
    """Writes events in the name of one component. An event that cannot be written is logged and forgotten.

    Equal events (object, reason, message) within `quiet` seconds are counted and written with the next one after.
    """

    def __init__(self, kube: Kube, component: str, *, now: Callable[[], float], quiet: float = 10.0) -> None:
        """`now` gives seconds since the epoch."""
        self._kube = kube
        self._component = component
        self._now = now
        self._quiet = quiet
        self._written: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    async def record(
        self, resource: Resource, obj: Object, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Record that `reason` (one CamelCase word) happened to `obj`, with a message for people."""
        meta = obj["metadata"]
        namespace = meta.get("namespace") or "default"
        digest = hashlib.sha256(f"{meta.get('uid')} {self._component} {reason} {message}".encode()).hexdigest()[:16]
        name = f"{meta['name'][:230].rstrip('.-')}.{digest}"
        moment = self._now()
        last, count = self._written.pop((namespace, name), (float("-inf"), 0))
        loud = not last <= moment < last + self._quiet
        self._written[namespace, name] = (moment if loud else last, count + 1)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        if not loud:
            return
        try:
            if count and await self._counted(namespace, name, count + 1):
                return
            event = self._event(resource, meta, reason, message[:_MAX_MESSAGE], warning=warning)
            await self._kube.create(EVENTS, {"metadata": {"name": name, "namespace": namespace}, **event})
        except AlreadyExists:
            await self._again(namespace, name)
        except Exception as error:
            trace = None if isinstance(error, LaminaError) else error
            log.warning("The event %s on %s could not be written: %s", reason, meta["name"], error, exc_info=trace)

    def _event(self, resource: Resource, meta: Object, reason: str, message: str, *, warning: bool) -> Object:
        time = rfc3339(self._now())
        return {
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": meta["name"],
                "namespace": meta.get("namespace", ""),
                "uid": meta.get("uid", ""),
            },
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "count": 1,
            "firstTimestamp": time,
            "lastTimestamp": time,
        }

    async def _counted(self, namespace: str, name: str, count: int) -> bool:
        """Whether the event was still there to take the new count: the server forgets events after a while."""
        body = {"count": count, "lastTimestamp": rfc3339(self._now())}
        try:
            await self._kube.patch(EVENTS, name, body, namespace=namespace)
        except NotFound:
            return False
        return True

    async def _again(self, namespace: str, name: str) -> None:
        """An event of an earlier run of this program, or of a replica: go on counting from there."""
        try:
            count = (await self._kube.get(EVENTS, name, namespace=namespace)).get("count") or 1
            self._written[namespace, name] = (self._now(), count + 1)
            await self._counted(namespace, name, count + 1)
        except Outside as error:
            log.warning("The event %s could not be counted: %s", name, error)
