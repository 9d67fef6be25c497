"""What a CronJob does next: the Job of a time that has come, Jobs to delete, and the status."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from lamina.ports.kube import CRON_JOBS, Object
from lamina.ports.kube.moments import rfc3339, seconds_of
from lamina_lab.controllers.framework.actions import Action, Create, Delete, Event
from lamina_lab.controllers.framework.kinds import JOBS
from lamina_lab.kubernetes import cron, objects

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY = 100
_HISTORY = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))


class CronPlan(Struct):
    """Actions in order, the status after them, and the seconds after which the plan may change without any event."""

    status: Object
    actions: list[Action] = field(default_factory=list)
    again: float | None = None


def plan(cron_job: Mapping[str, Any], jobs: Sequence[Object], now: float) -> CronPlan:
    """The next step for a CronJob that owns these jobs."""
    result = CronPlan(status=dict(objects.status(cron_job)))
    _follow(cron_job, jobs, result)
    _forget(cron_job, jobs, result)
    spec = objects.spec(cron_job)
    if objects.is_deleting(cron_job) or spec.get("suspend"):
        return result
    schedule, zone = cron.parse(spec["schedule"]), ZoneInfo(spec.get("timeZone") or "UTC")
    due, missed = _due(cron_job, schedule, zone, now)
    if missed > _MANY:
        message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        result.actions.append(_event(cron_job, "TooManyMissedTimes", message, warning=True))
    following = schedule.next_after(now, zone)
    result.again = None if following is None else following - now
    if due is not None and rfc3339(due) != result.status.get("lastScheduleTime"):
        _start(cron_job, jobs, due, zone, result)
    return result


def finished(job: Mapping[str, Any]) -> str:
    """Complete or Failed, or nothing while the job is not finished."""
    for kind in ("Complete", "Failed"):
        if (objects.condition(job, kind) or {}).get("status") == "True":
            return kind
    return ""


def _follow(cron_job: Mapping[str, Any], jobs: Sequence[Object], result: CronPlan) -> None:
    """Take jobs that ended, or went missing, out of the active ones."""
    by_uid = {objects.uid(job): job for job in jobs}
    active = []
    for reference in objects.status(cron_job).get("active") or ():
        job = by_uid.get(reference.get("uid", ""))
        if job is None:
            message = f"Active job went missing: {reference.get('name')}"
            result.actions.append(_event(cron_job, "MissingJob", message, warning=True))
        elif ended := finished(job):
            message = f"Saw completed job: {objects.name(job)}, condition: {ended}"
            result.actions.append(_event(cron_job, "SawCompletedJob", message))
        else:
            active.append(dict(reference))
    known = {reference.get("uid") for reference in objects.status(cron_job).get("active") or ()}
    for job in jobs:
        if objects.uid(job) not in known and not finished(job):
            message = f"Saw a job that the controller did not create or forgot: {objects.name(job)}"
            result.actions.append(_event(cron_job, "UnexpectedJob", message, warning=True))
    result.status["active"] = active
    ends = [str(objects.status(job).get("completionTime") or "") for job in jobs if finished(job) == "Complete"]
    if latest := max([*ends, str(result.status.get("lastSuccessfulTime") or "")]):
        result.status["lastSuccessfulTime"] = latest


def _forget(cron_job: Mapping[str, Any], jobs: Sequence[Object], result: CronPlan) -> None:
    """Delete the oldest finished jobs beyond the history limits."""
    for kind, limit, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        ended = sorted((job for job in jobs if finished(job) == kind), key=_began)
        for job in ended[: max(0, len(ended) - int(objects.spec(cron_job).get(limit, default)))]:
            if not objects.is_deleting(job):
                message = f"Deleted job {objects.name(job)}"
                result.actions += [Delete(JOBS, job), _event(cron_job, "SuccessfulDelete", message)]


def _began(job: Mapping[str, Any]) -> tuple[str, str]:
    return str(objects.status(job).get("startTime") or ""), objects.name(job)


def _due(cron_job: Mapping[str, Any], schedule: cron.Schedule, zone: tzinfo, now: float) -> tuple[float | None, int]:
    """The latest time of the schedule that has come since the last one, and how many have."""
    created = seconds_of(objects.meta(cron_job).get("creationTimestamp", "")) or now
    since = seconds_of(objects.status(cron_job).get("lastScheduleTime") or "") or created
    deadline = objects.spec(cron_job).get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, now - float(deadline))
    first = schedule.next_after(since, zone)
    if first is None or first > now:
        return None, 0
    second = schedule.next_after(first, zone)
    if second is None or second > now:
        return first, 1
    # As Kubernetes estimates it: by the first interval, and from one interval earlier for uneven schedules.
    missed = int((now - first) // (second - first)) + 1
    due, coming = first, schedule.next_after(first + (missed - 2) * (second - first), zone)
    while coming is not None and coming <= now:
        due, coming = coming, schedule.next_after(coming, zone)
    return due, missed


def _start(cron_job: Mapping[str, Any], jobs: Sequence[Object], due: float, zone: tzinfo, result: CronPlan) -> None:
    """Create the job of a time that has come, unless the policy forbids it."""
    policy = objects.spec(cron_job).get("concurrencyPolicy", "Allow")
    active = {reference["uid"] for reference in result.status["active"]}
    if active and policy == "Forbid":
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        result.actions.append(_event(cron_job, "JobAlreadyActive", message))
        return
    if policy == "Replace":
        for job in (job for job in jobs if objects.uid(job) in active):
            message = f"Deleted job {objects.name(job)}"
            result.actions += [Delete(JOBS, job), _event(cron_job, "SuccessfulDelete", message)]
        result.status["active"] = []
    made = _job_for(cron_job, due, zone)
    result.actions += [
        Create(JOBS, made),
        _event(cron_job, "SuccessfulCreate", f"Created job {objects.name(made)}"),
    ]
    result.status["lastScheduleTime"] = rfc3339(due)


def _job_for(cron_job: Mapping[str, Any], due: float, zone: tzinfo) -> Object:
    """The job of one time, named for its minute, so that no time has two."""
    template = objects.spec(cron_job).get("jobTemplate") or {}
    metadata = template.get("metadata") or {}
    when = datetime.fromtimestamp(due, zone).isoformat().replace("+00:00", "Z")
    return {
        "metadata": {
            "name": f"{objects.name(cron_job)}-{int(due) // 60}",
            "namespace": objects.namespace(cron_job),
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: when},
            "ownerReferences": [objects.owner_reference(CRON_JOBS.api_version, CRON_JOBS.kind, cron_job)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def _event(cron_job: Mapping[str, Any], reason: str, message: str, *, warning: bool = False) -> Event:
    return Event(CRON_JOBS, dict(cron_job), reason, message, warning)
