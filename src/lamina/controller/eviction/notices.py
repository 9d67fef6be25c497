"""Evictions after notice: an annotation that says when the pod ends, and an event, before the controller ends it.

Agents list the pods that are concerned. Everything else that is known is in the cluster, so another replica goes on
where this one ended. A pod that has no reason to end any more loses its notice.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, ClassVar, NamedTuple

from lamina.controller.context import Context
from lamina.controller.eviction.evictor import Evictor
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


class NoticedEvictions(ABC):
    """The loop of one replica. What derives from it says which pods end, under the configuration in force."""

    given: ClassVar[str]
    """The reason of the event that is the notice."""
    kept: ClassVar[str]
    """The reason of the event of a pod that cannot be ended, because of `problem`."""
    problem: ClassVar[str]

    def __init__(self, context: Context, evictor: Evictor) -> None:
        self.context = context
        self.evictor = evictor
        self._may_have_notice = True
        """Whether pods may have notices: pods are asked for only then, or while agents list some."""
        self._seen: dict[tuple[str, str], float] = {}
        """When a notice ends by the monotonic clock, by the UID of the pod and the text of the notice."""

    @abstractmethod
    def terms(self) -> NoticeTerms | None:
        """None where no pod ends."""

    @abstractmethod
    def listed_since(self, report: PodReport) -> int | None:
        """Since when an agent lists the pod, in seconds since 1970, or None."""

    @abstractmethod
    def is_due(self, namespace: str, since: float, now: float) -> bool:
        """Whether a pod that an agent lists is to get notice."""

    @abstractmethod
    def message(self) -> str:
        """The message of the notice, with the place {end} for the time when it ends."""

    @abstractmethod
    async def end(self, pod: Object, due: Sequence[Object]) -> None:
        """End the pod, one of those whose notice has ended. Raises Outside."""

    async def reconcile(self) -> None:
        """Bring each pod one step further. Raises Outside for what cannot be asked."""
        terms = self.terms()
        if terms is None or not self.evictor.leading():
            self._may_have_notice = True
            return
        listed = self._listed()
        if not listed and not self._may_have_notice:
            return
        pods = [pod for pod in (await self.context.kube.list(PODS)).items if _is_concerned(pod, listed, terms)]
        self._may_have_notice = bool(pods)
        self._see(pods, terms)
        steps = [self._next_step(pod, listed, terms) for pod in pods]
        due = [pod for pod, step in zip(pods, steps, strict=True) if step is NoticeStep.END]
        for pod, step in zip(pods, steps, strict=True):
            if not self.evictor.leading():
                return
            await self._attempt(pod, step, terms, due)

    def _listed(self) -> dict[str, int]:
        """Since when, by UID, the agents of their nodes list pods."""
        reports = self.context.ledger.reports()
        return {uid: since for uid, report in reports if (since := self.listed_since(report)) is not None}

    def _see(self, pods: Sequence[Object], terms: NoticeTerms) -> None:
        """Remember when the notices of these pods end by the monotonic clock, and no others."""
        wall, now, seen = self.context.clock.wall(), self.context.now(), {}
        for pod in pods:
            key = _notice(pod, terms)
            left = min(max((seconds_of(key[1]) or wall) - wall, 0.0), terms.notice_s)
            seen[key] = self._seen.get(key, now + left)
        self._seen = seen

    def _next_step(self, pod: Object, listed: Mapping[str, int], terms: NoticeTerms) -> NoticeStep:
        now, meta = self.context.clock.wall(), pod["metadata"]
        since = listed.get(meta["uid"])
        due = since is not None and self.is_due(meta["namespace"], since, now)
        step = next_step(pod, terms, now, due=due)
        early = self.context.now() < self._seen[_notice(pod, terms)]
        return NoticeStep.NOTHING if step is NoticeStep.END and early else step

    async def _attempt(self, pod: Object, step: NoticeStep, terms: NoticeTerms, due: Sequence[Object]) -> None:
        """Take the step, unless the pod is gone. Why it fails is an event of the pod."""
        meta = pod["metadata"]
        try:
            await self._take(pod, step, terms, due)
        except NotFound:
            return
        except Outside as error:
            log.warning("%s: pod %s/%s: %s", self.problem, meta["namespace"], meta["name"], error)
            await self.evictor.events.record(PODS, pod, self.kept, f"{self.problem}: {error}", warning=True)

    async def _take(self, pod: Object, step: NoticeStep, terms: NoticeTerms, due: Sequence[Object]) -> None:
        if step is NoticeStep.GIVE_NOTICE:
            end = rfc3339(self.context.clock.wall() + terms.notice_s)
            await self._annotate(pod, terms, end)
            self._seen[pod["metadata"]["uid"], end] = self.context.now() + terms.notice_s
            message = self.message().format(end=end)
            await self.evictor.events.record(PODS, pod, self.given, message, warning=True)
        elif step is NoticeStep.WITHDRAW:
            await self._annotate(pod, terms, None)
        elif step is NoticeStep.END:
            await self.end(pod, due)

    async def _annotate(self, pod: Object, terms: NoticeTerms, end: str | None) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"], "annotations": {terms.annotation: end}}}
        await self.context.kube.patch(PODS, meta["name"], body, namespace=meta["namespace"])


def _notice(pod: Object, terms: NoticeTerms) -> tuple[str, str]:
    """The UID of the pod, and the text of its notice, which may be empty."""
    meta = pod["metadata"]
    return meta["uid"], str((meta.get("annotations") or {}).get(terms.annotation) or "")


def _is_concerned(pod: Object, listed: Mapping[str, int], terms: NoticeTerms) -> bool:
    """Whether a pod that is alive is `listed` by its UID, or has a notice."""
    meta = pod["metadata"]
    alive = not meta.get("deletionTimestamp") and not is_over(pod)
    return alive and (meta["uid"] in listed or terms.annotation in (meta.get("annotations") or {}))
