"""The controller reclaims idle shares where the configuration allows it, after notice.

Each round looks at the pods that agents list as idle, and at those that have a notice. When its time is over and the
pod is still idle, it is evicted, or its workload is scaled to zero once all of its pods are due.
"""

import logging
from collections.abc import Mapping, Sequence

from lamina.controller.assembly import Controller
from lamina.core.idle import IdlePolicy
from lamina.core.pod_status import is_over
from lamina.core.workloads import Workload, workload_of
from lamina.operations.idle_decisions import KEEP, NOTICE, decide, terms
from lamina.operations.notices import Notices, NoticeStep
from lamina.operations.workloads import pods_of
from lamina.ports.kube import DEPLOYMENTS, PODS, STATEFUL_SETS, Conflict, Object, Resource
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

EVERY_S = 60.0
REPLICAS = "lamina.dev/replicas-before-idle"
"""The annotation of a workload that was scaled to zero: how many replicas it had."""
_SCALED: Mapping[str, Resource] = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}


async def reclaim_idle(controller: Controller) -> None:
    """Run rounds until canceled."""
    failures = FailureLog(log, "Reclaiming idle shares paused: %s")
    await poll(IdleRounds(controller).round, controller.context.clock, every_s=EVERY_S, failures=failures)


class IdleRounds:
    """The rounds of one replica."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._notices = Notices(controller)
        self._kube, self._clock = controller.context.kube, controller.context.clock

    async def round(self) -> None:
        """Bring each pod one step further. Raises Outside for what cannot be asked."""
        policy = self._controller.context.configuration.value.idle
        if not policy.hours or not self._controller.readiness:
            return
        now, since = self._clock.wall(), self._notices.listed(lambda report: report.idle_since)
        pods = [pod for pod in (await self._kube.list(PODS)).items if self._notices.concerns(pod, since, NOTICE)]
        steps = {pod["metadata"]["uid"]: decide(pod, since.get(pod["metadata"]["uid"]), policy, now) for pod in pods}
        due = {uid for uid, step in steps.items() if step is NoticeStep.END}
        scaled: set[tuple[str, Workload]] = set()
        for pod in pods:
            if not self._controller.readiness:
                return
            step = self._take(pod, steps[pod["metadata"]["uid"]], policy, due, scaled)
            await self._notices.attempt(step, pod, "Its idle share cannot be reclaimed", "IdleShareKept")

    async def _take(
        self, pod: Object, step: NoticeStep, policy: IdlePolicy, due: set[str], scaled: set[tuple[str, Workload]]
    ) -> None:
        if step is NoticeStep.GIVE_NOTICE:
            await self._give_notice(pod, policy)
        elif step is NoticeStep.WITHDRAW:
            await self._notices.withdraw(pod, terms(policy))
        elif step is NoticeStep.END and policy.action == "evict":
            await self._notices.evict(pod, "IdleShareReclaimed", "Evicted, because it used no GPU")
            log.info("Evicted idle pod %s/%s", pod["metadata"]["namespace"], pod["metadata"]["name"])
        elif step is NoticeStep.END:
            of = pod["metadata"]["namespace"], workload_of(pod)
            if of not in scaled:
                scaled.add(of)
                await self._scale(pod, of[1], due)

    async def _give_notice(self, pod: Object, policy: IdlePolicy) -> None:
        what = "it is evicted" if policy.action == "evict" else "its workload is scaled to zero"
        message = (
            f"No GPU use for {policy.hours} h. At {{end}} {what}, unless it uses a GPU. To keep it, set the annotation "
            f"{KEEP}=true"
        )
        await self._notices.give(pod, terms(policy), "IdleNotice", message)

    async def _scale(self, pod: Object, of: Workload, due: set[str]) -> None:
        """Scale the pod's workload to zero if all of its pods are due."""
        resource, namespace = _SCALED.get(of.kind), pod["metadata"]["namespace"]
        if resource is None:
            return
        workload = await self._kube.get(resource, of.name, namespace=namespace)
        replicas = workload["spec"].get("replicas", 1)
        if not replicas or not _all_due(await pods_of(self._kube, workload), due):
            return
        change = {
            "metadata": {
                "resourceVersion": workload["metadata"]["resourceVersion"],
                "annotations": {REPLICAS: str(replicas)},
            },
            "spec": {"replicas": 0},
        }
        try:
            await self._kube.patch(resource, of.name, change, namespace=namespace)
        except Conflict:
            return  # it has changed, which the next round looks at
        log.info("Scaled %s %s/%s from %d to 0, because it is idle", of.kind, namespace, of.name, replicas)
        message = f"Scaled from {replicas} to 0, because its pods used no GPU"
        await self._controller.events.record(resource, workload, "IdleShareReclaimed", message)


def _all_due(pods: Sequence[Object], due: set[str]) -> bool:
    running = [pod for pod in pods if not is_over(pod)]
    return bool(running) and all(pod["metadata"]["uid"] in due for pod in running)
