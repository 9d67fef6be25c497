"""CronJobs: a Job per time, what happens while one runs, times that were missed, and what is kept."""

from typing import Any

import pytest

from lamina.ports.kube import CRON_JOBS, JOBS
from lamina.ports.kube.moments import rfc3339
from lamina_lab.controllers.cronjob.plan import plan
from lamina_lab.controllers.framework.actions import Create
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess, template
from tests.worlds.clocks import settle

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


def cron_job(schedule: str = "*/10 * * * *", **spec: Any) -> dict[str, Any]:
    body = template({"app": "nightly"})
    body["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"labels": {"team": "a"}}, "spec": {"template": body}}
    return {
        "metadata": {"name": "nightly", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": job, **spec},
    }


def stored(schedule: str = "*/10 * * * *", last: float | None = None, **spec: Any) -> dict[str, Any]:
    """As the API server has it, created an hour before noon."""
    made = cron_job(schedule, **spec)
    made["metadata"] |= {"uid": "c", "creationTimestamp": rfc3339(NOON - 3600)}
    made["status"] = {} if last is None else {"lastScheduleTime": rfc3339(last)}
    return made


def created(obj: dict[str, Any], now: float) -> list[str]:
    return [objects.name(each.obj) for each in plan(obj, [], now).actions if isinstance(each, Create)]


def reasons(obj: dict[str, Any], now: float) -> list[str]:
    return [each.reason for each in plan(obj, [], now).actions if hasattr(each, "reason")]


def test_a_job_is_named_for_its_time() -> None:
    obj = stored(last=NOON - 600, timeZone="Europe/Berlin")
    assert created(obj, NOON - 1) == []
    assert plan(obj, [], NOON - 1).again == 1
    (job,) = (each.obj for each in plan(obj, [], NOON + 5).actions if isinstance(each, Create))
    assert job["metadata"]["name"] == f"nightly-{int(NOON) // 60}"
    assert job["metadata"]["labels"] == {"team": "a"}
    when = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T13:00:00+01:00"}
    assert job["metadata"]["annotations"] == when
    assert plan(obj, [], NOON + 5).status["lastScheduleTime"] == rfc3339(NOON)
    assert plan(obj, [], NOON + 5).again == 595


def test_of_missed_times_only_the_latest_gets_a_job() -> None:
    obj = stored(last=NOON - 3000)
    assert created(obj, NOON + 60) == [f"nightly-{int(NOON) // 60}"]
    assert created(stored(last=NOON - 3000, startingDeadlineSeconds=30), NOON + 60) == []
    assert created(stored(last=NOON - 3000, startingDeadlineSeconds=90), NOON + 60) != []
    long_ago = stored("* * * * *", last=NOON - 400 * 86400)
    assert created(long_ago, NOON + 30) == [f"nightly-{int(NOON) // 60}"]
    assert reasons(long_ago, NOON + 30)[0] == "TooManyMissedTimes"
    weekdays = stored("0 9 * * mon-fri", last=NOON - 9 * 86400)
    assert created(weekdays, NOON) == [f"nightly-{int(NOON - 3 * 3600) // 60}"]


@pytest.mark.parametrize("spec", [{"suspend": True}, {"deleted": True}])
def test_a_suspended_or_deleted_one_starts_nothing(spec: dict[str, Any]) -> None:
    obj = stored(last=NOON - 600, **spec)
    if "deleted" in spec:
        obj["metadata"]["deletionTimestamp"] = rfc3339(NOON)
    assert plan(obj, [], NOON + 1).actions == []
    assert plan(obj, [], NOON + 1).again is None


def jobs(cluster: LabInProcess) -> list[str]:
    return sorted(objects.name(job) for job in cluster.all(JOBS))


async def pass_time(cluster: LabInProcess, seconds: float) -> None:
    await cluster.clock.advance(seconds)
    await settle(1500)


@pytest.mark.parametrize(("policy", "at_once", "kept"), [("Allow", 2, 2), ("Forbid", 1, 1), ("Replace", 1, 1)])
async def test_the_policy_for_jobs_that_still_run(
    cluster: LabInProcess, kubelet: Kubelet, policy: str, at_once: int, kept: int
) -> None:
    await cluster.create(CRON_JOBS, cron_job("@every 60s", concurrencyPolicy=policy))
    await settle(500)
    await pass_time(cluster, 61)
    first = jobs(cluster)
    assert len(first) == 1
    await pass_time(cluster, 60)
    assert len(jobs(cluster)) == kept
    assert (jobs(cluster) == first) == (policy == "Forbid")
    status = (await cluster.get(CRON_JOBS, "nightly"))["status"]
    assert len(status["active"]) == at_once
    assert bool(cluster.events("JobAlreadyActive")) == (policy == "Forbid")


async def test_finished_jobs_are_noted_and_the_oldest_forgotten(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: "Succeeded"
    wanted = cron_job("@every 60s", successfulJobsHistoryLimit=2)
    await cluster.create(CRON_JOBS, wanted)
    await settle(500)
    for _ in range(4):
        await pass_time(cluster, 61)
    await pass_time(cluster, 20)
    assert len(jobs(cluster)) == 2
    status = (await cluster.get(CRON_JOBS, "nightly"))["status"]
    assert (status["active"], "lastSuccessfulTime" in status) == ([], True)
    assert cluster.events("SawCompletedJob")
    assert all(
        event["message"].startswith("Created job nightly-")
        for event in cluster.events("SuccessfulCreate")
        if event["involvedObject"]["kind"] == "CronJob"
    )
    await cluster.delete(CRON_JOBS, "nightly")
    await settle(500)
    assert jobs(cluster) == []
