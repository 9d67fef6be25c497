"""A notice to the owner of a pod before the controller ends it: an annotation with the time, and an event.

Everything that is known is in the cluster, so another replica goes on where this one ended. A pod that has no reason to
end any more loses its notice.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from lamina.controller.assembly import Controller
from lamina.core.pod_status import is_over
from lamina.errors import Outside
from lamina.ledger.pod_reports import PodReport
from lamina.ports.kube import PODS, NotFound, Object
from lamina.ports.kube.moments import rfc3339, seconds_of

STALE_S = 900.0
"""A notice that ended so long ago was given under another policy or before an outage. It is given again."""
log = logging.getLogger(__name__)


class NoticeStep(Enum):
    NOTHING = auto()
    GIVE_NOTICE = auto()
    WITHDRAW = auto()
    END = auto()


class NoticeTerms(NamedTuple):
    """`annotation` says when the pod ends; its owner keeps it with `keep`. A notice lasts for `notice_s` seconds."""

    annotation: str
    keep: str
    notice_s: float


def next_step(pod: Mapping[str, Any], terms: NoticeTerms, now: float, *, due: bool) -> NoticeStep:
    """The next step for a pod that is `due` for an end, or is not. Pure."""
    annotations = pod["metadata"].get("annotations") or {}
    written = str(annotations.get(terms.annotation) or "")
    if not due or str(annotations.get(terms.keep)).strip().lower() == "true":
        return NoticeStep.WITHDRAW if written else NoticeStep.NOTHING
    end = seconds_of(written) if written else None
    if end is None or end > now + terms.notice_s or end < now - STALE_S:
        return NoticeStep.GIVE_NOTICE
    return NoticeStep.END if end <= now else NoticeStep.NOTHING


class Notices:
    """Gives and withdraws the notices of one replica."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._kube, self._clock = controller.context.kube, controller.context.clock

    def listed(self, of: Callable[[PodReport], int | None]) -> dict[str, int]:
        """Since when, by UID, the pods are what the agents of their nodes list them for."""
        reports = self._controller.context.ledger.reports()
        return {uid: since for uid, report in reports if (since := of(report)) is not None}

    def concerns(self, pod: Object, listed: Mapping[str, int], annotation: str) -> bool:
        """Whether a pod that is alive is `listed` by its UID, or has a notice."""
        meta = pod["metadata"]
        alive = not meta.get("deletionTimestamp") and not is_over(pod)
        return alive and (meta["uid"] in listed or annotation in (meta.get("annotations") or {}))

    async def give(self, pod: Object, terms: NoticeTerms, reason: str, message: str) -> None:
        """`message` has the place {end} for the time when the notice ends. Raises Outside."""
        end = rfc3339(self._clock.wall() + terms.notice_s)
        await self._annotate(pod, terms.annotation, end)
        await self._controller.events.record(PODS, pod, reason, message.format(end=end), warning=True)

    async def withdraw(self, pod: Object, terms: NoticeTerms) -> None:
        """Raises Outside."""
        await self._annotate(pod, terms.annotation, None)

    async def _annotate(self, pod: Object, annotation: str, end: str | None) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"], "annotations": {annotation: end}}}
        await self._kube.patch(PODS, meta["name"], body, namespace=meta["namespace"])

    async def evict(self, pod: Object, reason: str, message: str) -> None:
        """Raises Outside where a PodDisruptionBudget holds the pod."""
        meta = pod["metadata"]
        await self._kube.evict(meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        await self._controller.events.record(PODS, pod, reason, message)

    async def attempt(self, step: Awaitable[None], pod: Object, problem: str, kept: str) -> None:
        """Take a step for a pod, unless it is gone. `problem` and the reason why it fails are the event `kept`."""
        meta = pod["metadata"]
        try:
            await step
        except NotFound:
            return
        except Outside as error:
            log.warning("%s: pod %s/%s: %s", problem, meta["namespace"], meta["name"], error)
            await self._controller.events.record(PODS, pod, kept, f"{problem}: {error}", warning=True)
