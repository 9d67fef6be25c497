"""The controller reclaims idle shares where the configuration allows it, after notice.

Agents list pods that use no GPU. When the notice of such a pod is over, it is evicted, or its workload is scaled to
zero once all of its pods are due.
"""

import logging
from collections.abc import Mapping, Sequence

from lamina.controller.eviction.notices import NoticedEvictions, NoticeTerms
from lamina.core.evictions import IdleShares
from lamina.core.pod_status import is_over
from lamina.core.workloads import Workload, workload_of
from lamina.ledger.pod_reports import PodReport
from lamina.ports.kube import DEPLOYMENTS, PODS, STATEFUL_SETS, Conflict, Object, Resource
from lamina.ports.kube.selectors import pod_labels

log = logging.getLogger(__name__)

EVERY_S = 60.0
NOTICE = "lamina.dev/idle-notice"
"""The annotation that says when the share of an idle pod is reclaimed."""
KEEP = "lamina.dev/keep-idle"
"""The annotation with which the owner of a pod keeps it although it is idle."""
REPLICAS = "lamina.dev/replicas-before-idle"
"""The annotation of a workload that was scaled to zero: how many replicas it had."""
_RECLAIMED = "IdleShareReclaimed"
_SCALED: Mapping[str, Resource] = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}
_HOUR_S = 3600.0


class IdleEvictions(NoticedEvictions):
    """Those of the cluster."""

    given, kept = "IdleNotice", "IdleShareKept"
    problem = "Its idle share cannot be reclaimed"

    @property
    def _policy(self) -> IdleShares:
        return self.context.configuration.value.idle_shares

    def terms(self) -> NoticeTerms | None:
        return NoticeTerms(NOTICE, KEEP, 60.0 * self._policy.notice_minutes) if self._policy.hours else None

    def listed_since(self, report: PodReport) -> int | None:
        return report.idle_since

    def is_due(self, namespace: str, since: float, now: float) -> bool:
        return now - since >= self._policy.hours * _HOUR_S and self._policy.covers(namespace)

    def message(self) -> str:
        what = "it is evicted" if self._policy.action == "evict" else "its workload is scaled to zero"
        return (
            f"No GPU use for {self._policy.hours} h. At {{end}} {what}, unless it uses a GPU. To keep it, set the "
            f"annotation {KEEP}=true"
        )

    async def end(self, pod: Object, due: Sequence[Object]) -> None:
        if self._policy.action == "evict":
            await self.evictor.evict(pod, _RECLAIMED, "Evicted, because it used no GPU")
        elif next(each for each in due if _owner(each) == _owner(pod)) is pod:
            await self._scale(pod["metadata"]["namespace"], workload_of(pod), {each["metadata"]["uid"] for each in due})

    async def _scale(self, namespace: str, of: Workload, due: set[str]) -> None:
        """Scale the workload to zero if all of its pods are due."""
        resource, kube = _SCALED.get(of.kind), self.context.kube
        if resource is None:
            return
        workload = await kube.get(resource, of.name, namespace=namespace)
        replicas, labels = workload["spec"].get("replicas", 1), pod_labels(workload)
        pods = (await kube.list(PODS, namespace=namespace, labels=labels)).items if replicas and labels else []
        running = [pod["metadata"]["uid"] for pod in pods if not is_over(pod)]
        if not running or not due.issuperset(running):
            return
        change = {
            "metadata": {
                "resourceVersion": workload["metadata"]["resourceVersion"],
                "annotations": {REPLICAS: str(replicas)},
            },
            "spec": {"replicas": 0},
        }
        try:
            await kube.patch(resource, of.name, change, namespace=namespace)
        except Conflict:
            return  # it has changed, which the next call looks at
        log.info("Scaled %s %s/%s from %d to 0, because it is idle", of.kind, namespace, of.name, replicas)
        message = f"Scaled from {replicas} to 0, because its pods used no GPU"
        await self.evictor.events.record(resource, workload, _RECLAIMED, message)


def _owner(pod: Object) -> tuple[str, Workload]:
    return pod["metadata"]["namespace"], workload_of(pod)
