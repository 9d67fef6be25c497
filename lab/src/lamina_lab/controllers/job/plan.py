"""What a Job does next: how many pods to create or delete, and whether it is complete or failed."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339, seconds_of
from lamina_lab.controllers.framework.replicas import restarts
from lamina_lab.controllers.job import indexes
from lamina_lab.kubernetes import objects

BACKOFF_LIMIT = 6
_FIRST_RETRY_S, _SLOWEST_RETRY_S = 10.0, 360.0


class JobPlan(Struct):
    """`create` pods after `delay` seconds, pods to `delete`, the `status` to publish, and events.

    `again` is the number of seconds after which the plan may change without any event.
    """

    status: Object
    create: int = 0
    delay: float = 0.0
    delete: list[Object] = field(default_factory=list)
    again: float | None = None
    remove: bool = False


def finished(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The condition that ended the job."""
    for kind in ("Complete", "Failed"):
        ended = objects.condition(job, kind)
        if ended is not None and ended.get("status") == "True":
            return ended
    return None


def plan(job: Mapping[str, Any], pods: Sequence[Object], now: float) -> JobPlan:
    """The next step for a job that owns these pods."""
    ended = finished(job)
    if ended is not None:
        return _after(job, ended, now)
    counts = _count(job, pods, now)
    if objects.is_deleting(job):
        return JobPlan(status=counts)
    active = [pod for pod in pods if objects.is_active(pod)]
    if objects.spec(job).get("suspend"):
        return JobPlan(status=_suspended(counts, now), delete=active)
    counts["conditions"] = _resumed(counts, now)
    failure = _failure(job, pods, counts, now)
    if failure:
        return JobPlan(status=_end(counts, "Failed", *failure, now), delete=active)
    if _succeeded(job, counts):
        said = ("CompletionsReached", "Reached expected number of succeeded pods")
        done = _end(counts, "Complete", *said, now)
        return JobPlan(status=done, delete=active)
    return _keep_going(job, pods, active, counts, now)


def _keep_going(
    job: Mapping[str, Any], pods: Sequence[Object], active: list[Object], counts: Object, now: float
) -> JobPlan:
    spec = objects.spec(job)
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is not None:
        wanted = min(parallelism, int(completions) - counts["succeeded"])
    else:  # a work queue: once one pod has succeeded, no new pod starts
        wanted = len(active) if counts["succeeded"] else parallelism
    surplus = len(active) - max(0, wanted)
    plan = JobPlan(status=counts, again=_deadline_in(job, counts, now))
    if surplus > 0:
        plan.delete = sorted(active, key=lambda pod: (objects.is_ready(pod), -objects.version(pod)))[:surplus]
    elif surplus < 0:
        plan.create = -surplus
        plan.delay = _retry_in(pods, now)
    return plan


def _count(job: Mapping[str, Any], pods: Sequence[Object], now: float) -> Object:
    before = objects.status(job)
    active = [pod for pod in pods if objects.is_active(pod)]
    status: Object = {
        "active": len(active),
        "ready": sum(map(objects.is_ready, active)),
        "succeeded": sum(objects.phase(pod) == "Succeeded" for pod in pods),
        "failed": sum(objects.phase(pod) == "Failed" for pod in pods),
        "terminating": sum(objects.is_deleting(pod) and not objects.is_finished(pod) for pod in pods),
        "startTime": before.get("startTime") or rfc3339(now),
        "conditions": [dict(condition) for condition in before.get("conditions") or ()],
    }
    # A pod that was counted stays counted after it is deleted.
    for count in ("succeeded", "failed"):
        status[count] = max(status[count], int(before.get(count) or 0))
    if indexes.is_indexed(job):
        done = indexes.completed(job, pods)
        status |= {"succeeded": len(done), "completedIndexes": indexes.text(done)}
    return status


def _failure(job: Mapping[str, Any], pods: Sequence[Object], counts: Object, now: float) -> tuple[str, str] | None:
    spec = objects.spec(job)
    limit = int(spec.get("backoffLimit", BACKOFF_LIMIT))
    retries = sum(restarts(pod) for pod in pods) if _restarts_in_place(job) else 0
    exceeded = counts["failed"] > limit or (_restarts_in_place(job) and retries > 0 and retries >= limit)
    if exceeded:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    remaining = _deadline_in(job, counts, now)
    if remaining is not None and remaining <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _restarts_in_place(job: Mapping[str, Any]) -> bool:
    template = objects.spec(job).get("template") or {}
    return bool((template.get("spec") or {}).get("restartPolicy") == "OnFailure")


def _succeeded(job: Mapping[str, Any], counts: Object) -> bool:
    completions = objects.spec(job).get("completions")
    if completions is not None:
        return bool(counts["succeeded"] >= int(completions))
    return bool(counts["succeeded"] > 0 and counts["active"] == 0)


def _deadline_in(job: Mapping[str, Any], counts: Object, now: float) -> float | None:
    deadline = objects.spec(job).get("activeDeadlineSeconds")
    started = seconds_of(counts["startTime"])
    return None if deadline is None or started is None else started + float(deadline) - now


def _retry_in(pods: Sequence[Object], now: float) -> float:
    """Ten seconds after a failure, doubled with each further failure, six minutes at most."""
    failed = [pod for pod in pods if objects.phase(pod) == "Failed"]
    if not failed:
        return 0.0
    wait = min(_SLOWEST_RETRY_S, _FIRST_RETRY_S * 2.0 ** (len(failed) - 1))
    return max(0.0, max(map(_ended_at, failed)) + wait - now)


def _ended_at(pod: Object) -> float:
    """When the pod's last container ended, or the pod's creation time if no container ever ran."""
    ends = [
        seconds_of(((status.get("state") or {}).get("terminated") or {}).get("finishedAt", "")) or 0.0
        for status in objects.status(pod).get("containerStatuses") or ()
    ]
    return max(ends, default=0.0) or seconds_of(objects.meta(pod).get("creationTimestamp", "")) or 0.0


def _condition(kind: str, holds: bool, reason: str, message: str, now: float) -> Object:
    when = rfc3339(now)
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastProbeTime": when,
        "lastTransitionTime": when,
    }


def _end(counts: Object, kind: str, reason: str, message: str, now: float) -> Object:
    """The final status with the two conditions that Kubernetes writes since 1.31; the first announces the second."""
    early = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = counts["conditions"]
    for condition_type in (early, kind):
        conditions = objects.with_condition(conditions, _condition(condition_type, True, reason, message, now))
    ended = {**counts, "conditions": conditions, "active": 0, "ready": 0, "terminating": counts["active"]}
    if kind == "Complete":
        ended["completionTime"] = rfc3339(now)
    return ended


def _suspended(counts: Object, now: float) -> Object:
    said = _condition("Suspended", True, "JobSuspended", "Job suspended", now)
    kept = objects.condition({"status": counts}, "Suspended")
    already = kept is not None and kept.get("status") == "True"
    conditions = counts["conditions"] if already else objects.with_condition(counts["conditions"], said)
    return {**counts, "conditions": conditions, "startTime": None}


def _resumed(counts: Object, now: float) -> list[Object]:
    kept = objects.condition({"status": counts}, "Suspended")
    conditions: list[Object] = counts["conditions"]
    if kept is None or kept.get("status") != "True":
        return conditions
    return objects.with_condition(conditions, _condition("Suspended", False, "JobResumed", "Job resumed", now))


def _after(job: Mapping[str, Any], ended: Mapping[str, Any], now: float) -> JobPlan:
    """A finished job does not change. It is removed with its pods after ttlSecondsAfterFinished."""
    plan = JobPlan(status=dict(objects.status(job)))
    ttl = objects.spec(job).get("ttlSecondsAfterFinished")
    since = seconds_of(ended.get("lastTransitionTime", ""))
    if ttl is not None and since is not None:
        left = since + float(ttl) - now
        plan.remove = left <= 0
        plan.again = max(0.0, left)
    return plan
