"""Jobs: pods that run to their end as often as asked, with failures counted and time limits kept."""

from typing import Any

import pytest

from lamina.ports.kube import NotFound
from lamina_lab.controllers.framework.kinds import JOBS
from lamina_lab.controllers.job.indexes import INDEX, completed
from lamina_lab.controllers.job.indexes import text as written
from lamina_lab.controllers.job.plan import finished, plan
from tests.lab_controllers.cluster import Kubelet, LabInProcess, template
from tests.worlds.clocks import settle

NOW = 1_800_000_000.0


def job(restart: str = "Never", **spec: Any) -> dict[str, Any]:
    body = template({})
    body["spec"]["restartPolicy"] = restart
    return {"metadata": {"name": "work", "namespace": "default"}, "spec": {"template": body, **spec}}


def pods_in(**phases: int) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"name": f"{phase}{n}", "uid": f"{phase}{n}", "creationTimestamp": "2027-01-15T08:00:00Z"},
            "status": {"phase": phase},
        }
        for phase, count in phases.items()
        for n in range(count)
    ]


@pytest.mark.parametrize("parallelism", range(4))
@pytest.mark.parametrize("completions", range(4))
def test_never_more_pods_than_parallelism_or_what_is_left_to_do(parallelism: int, completions: int) -> None:
    for active in range(5):
        for succeeded in range(completions):
            there = pods_in(Running=active, Succeeded=succeeded)
            todo = plan({"spec": {"parallelism": parallelism, "completions": completions}}, there, NOW)
            running = active + todo.create - len(todo.delete)
            assert running == min(parallelism, completions - succeeded)


def test_a_work_queue_ends_when_one_has_succeeded_and_all_have_ended() -> None:
    queue: dict[str, Any] = {"spec": {"parallelism": 3}}
    assert plan(queue, pods_in(Running=1), NOW).create == 2
    draining = plan(queue, pods_in(Running=2, Succeeded=1), NOW)
    assert (draining.create, draining.delete, finished({"status": draining.status})) == (0, [], None)
    ended = finished({"status": plan(queue, pods_in(Succeeded=3), NOW).status})
    assert ended is not None
    assert ended["type"] == "Complete"


@pytest.mark.parametrize(("failed", "wait"), [(1, 10), (2, 20), (4, 80)])
def test_retries_wait_twice_as_long_each_time(failed: int, wait: float) -> None:
    todo = plan({"spec": {"completions": 1, "backoffLimit": 9}}, pods_in(Failed=failed), NOW)
    assert (todo.create, todo.delay) == (1, wait)


async def test_a_job_completes(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: "Succeeded"
    await cluster.create(JOBS, job(completions=5, parallelism=2))
    await settle(3000)
    done = await cluster.get(JOBS, "work")
    assert done["status"]["succeeded"] == 5
    assert [each["type"] for each in done["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert done["status"]["completionTime"]
    assert len(cluster.events("Completed")) == 1


async def test_an_indexed_job_runs_each_index_until_it_has_succeeded(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: None
    await cluster.create(JOBS, job(completions=4, parallelism=3, completionMode="Indexed", backoffLimit=9))
    await settle(1000)
    pods = {pod["metadata"]["annotations"][INDEX]: pod for pod in cluster.pods()}
    assert sorted(pods) == ["0", "1", "2"] and len(cluster.pods()) == 3
    for index, pod in pods.items():
        meta, [container] = pod["metadata"], pod["spec"]["containers"]
        assert meta["name"].startswith(f"work-{index}-") and meta["labels"][INDEX] == index
        assert pod["spec"]["hostname"] == f"work-{index}"
        [variable] = container["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    failing = {"1"}
    kubelet.answer = lambda pod: "Failed" if pod["metadata"]["annotations"][INDEX] in failing else "Succeeded"
    await kubelet.again()
    await settle(3000)
    status = (await cluster.get(JOBS, "work"))["status"]
    assert (status["completedIndexes"], status["succeeded"], status["failed"]) == ("0,2", 2, 1)
    failing.clear()
    await cluster.clock.advance(30)
    status = (await cluster.get(JOBS, "work"))["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-3", 4)
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]


@pytest.mark.parametrize(
    ("indexes", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([5, 0, 1, 3, 7, 6], "0-1,3,5-7")]
)
def test_completed_indexes_are_written_as_kubernetes_writes_them(indexes: list[int], text: str) -> None:
    done = {"spec": {"completions": 9}, "status": {"completedIndexes": text}}
    assert written(indexes) == text and completed(done, []) == set(indexes)


async def test_a_job_that_keeps_failing_gives_up(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: "Failed"
    await cluster.create(JOBS, job(backoffLimit=2))
    await settle(1000)
    await cluster.clock.advance(60)
    ended = finished(await cluster.get(JOBS, "work"))
    assert ended is not None
    assert (ended["type"], ended["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert (await cluster.get(JOBS, "work"))["status"]["failed"] == 3
    assert len(cluster.events("BackoffLimitExceeded")) == 1


async def test_a_job_over_its_deadline_is_ended_with_its_pods(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(JOBS, job(activeDeadlineSeconds=20))
    await settle(1000)
    assert len(cluster.pods()) == 1
    await cluster.clock.advance(15)
    assert finished(await cluster.get(JOBS, "work")) is None
    await cluster.clock.advance(10)
    ended = finished(await cluster.get(JOBS, "work"))
    assert ended is not None
    assert ended["reason"] == "DeadlineExceeded"
    assert cluster.pods() == []


async def test_a_finished_job_is_removed_after_its_time_to_live(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: "Succeeded"
    await cluster.create(JOBS, job(ttlSecondsAfterFinished=30))
    await settle(1000)
    await cluster.clock.advance(25)
    assert finished(await cluster.get(JOBS, "work"))
    await cluster.clock.advance(10)
    with pytest.raises(NotFound):
        await cluster.get(JOBS, "work")
    assert cluster.pods() == []


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(JOBS, job(suspend=True))
    await settle(500)
    assert cluster.pods() == []
    await cluster.change(JOBS, "work", {"spec": {"suspend": False}})
    await settle(500)
    assert len(cluster.pods()) == 1
    await cluster.change(JOBS, "work", {"spec": {"suspend": True}})
    await settle(500)
    assert cluster.pods() == []
    assert "startTime" not in (await cluster.get(JOBS, "work"))["status"]


async def test_a_refused_pod_is_tried_again_after_a_pause(cluster: LabInProcess, kubelet: Kubelet) -> None:
    cluster.admission.refusal = "gpumem must be positive"
    await cluster.create(JOBS, job())
    await settle(500)
    await cluster.clock.advance(20)
    assert 3 <= cluster.admission.asked <= 5
    (event,) = cluster.events("FailedCreate")
    assert "gpumem must be positive" in event["message"]
