"""`lamina why KIND/NAME` and the namespace that commands look in."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.ports.kube import CRON_JOBS, DEPLOYMENTS, JOBS, PODS, Resource
from lamina.ports.kube.client import context_namespace
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, cron_job, inventory, pod


def workload(*containers: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "w"}}, "template": {"spec": {"containers": [*containers]}}}
    return {"metadata": {"name": "w", "namespace": namespace}, "spec": spec}


async def with_pods(count: int) -> FakeKube:
    pods = [pod(f"w-{index}", container(gpu=1, gpumem=99999)) for index in range(count)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "w"}
    kube = await cluster(inventory("n"), *pods, pod("other", container(gpu=1, gpumem=99999)))
    await kube.create(DEPLOYMENTS, workload(container(gpu=1, gpumem=99999)))
    return kube


@pytest.mark.parametrize(("resource", "which"), [(DEPLOYMENTS, "deploy/w"), (JOBS, "job/w"), (JOBS, "jobs.batch/w")])
async def test_why_says_that_the_pods_of_a_workload_are_refused(
    resource: Resource, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(resource, workload(container(gpu=1, gpucores=150)))
    ended = await Commands(monkeypatch, kube).run("why", which)
    sentence = 'container "main": nvidia.com/gpucores must be an integer from 0 to 100, got 150'
    assert (ended.code, ended.output) == (1, f"{resource.kind} w: its pods will be refused: {sentence}.\n")


@pytest.mark.parametrize("which", ["cj/w", "cronjob/w", "cronjobs.batch/w"])
async def test_why_explains_the_pods_of_a_cron_jobs_jobs(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("other", container(gpu=1, gpumem=99999)))
    await kube.create(CRON_JOBS, cron_job(workload(container(gpu=1, gpumem=99999))))
    for job in ("w-29401234", "w-29401235", "w-x-29401235"):
        each = pod(f"{job}-abcde", container(gpu=1, gpumem=99999))
        each["metadata"]["ownerReferences"] = [{"kind": "Job", "name": job, "controller": True}]
        await kube.create(PODS, each)
    lines = (await Commands(monkeypatch, kube).run("why", which)).output.splitlines()
    reason = "is pending: node n: needs 99999 MiB; the largest GPU has 15360 MiB."
    assert lines[:2] == [f"w-29401234-abcde {reason}", "The same holds for w-29401235-abcde."]


async def test_why_says_that_the_pods_of_a_cron_job_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(CRON_JOBS, cron_job(workload(container(gpu=1, gpucores=150))))
    ended = await Commands(monkeypatch, kube).run("why", "cronjob/w")
    assert ended.code == 1
    assert ended.output.startswith("CronJob w: its pods will be refused: ")


@pytest.mark.parametrize("which", ["deploy/w", "deployment/w", "deployments.apps/w", "Deployment/w"])
async def test_why_explains_the_pods_of_a_deployment(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (await Commands(monkeypatch, await with_pods(2)).run("why", which)).output.splitlines()
    reason = "is pending: node n: needs 99999 MiB; the largest GPU has 15360 MiB."
    assert lines[:3] == [f"w-0 {reason}", "The same holds for w-1.", "What would help:"]
    assert lines[3] == "  It would fit now with at most 15360 MiB, on node n."


async def test_why_gives_a_reason_once_and_names_the_first_pods_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (await Commands(monkeypatch, await with_pods(8)).run("why", "deploy/w")).output.splitlines()
    assert lines[1] == "The same holds for w-1, w-2, w-3, w-4, w-5 and 2 more."


async def test_why_gives_the_first_of_many_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(DEPLOYMENTS, workload(container(gpu=1, gpumem=99999)))
    for index in range(7):
        each = pod(f"w-{index}", container(gpu=1, gpumem=90000 + min(index, 5)))
        each["metadata"]["labels"] = {"app": "w"}
        await kube.create(PODS, each)
    lines = (await Commands(monkeypatch, kube).run("why", "deploy/w")).output.splitlines()
    assert [line.split()[0] for line in lines[:5]] == [f"w-{index}" for index in range(5)]
    assert lines[5:7] == ["2 more pods of Deployment w are pending.", "What would help:"]


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("deploy/absent", "there is no Deployment absent in namespace default"),
        (
            "svc/w",
            "svc is not a kind of workload; "
            "known are Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob",
        ),
    ],
)
async def test_a_workload_that_is_not_there_is_one_sentence(
    which: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = await with_pods(1)
    ended = await Commands(monkeypatch, kube).run("why", which)
    assert (ended.code, ended.error) == (2, sentence)


async def test_pods_and_why_look_in_the_namespace_of_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("mine", container(gpu=1), namespace="team"), pod("x", container(gpu=1)))
    commands = Commands(monkeypatch, kube, namespace="team")
    assert [row[0] for row in (await commands.run("pods")).rows[1:2]] == ["mine"]
    assert (await commands.run("why", "mine")).output.startswith("mine would fit now")
    assert (await commands.run("why", "pod/mine")).output.startswith("mine would fit now")
    assert (await commands.run("why", "x")).error == "there is no pod x in namespace team"
    assert [row[0] for row in (await commands.run("pods", "-n", "default")).rows[1:2]] == ["x"]


@pytest.mark.parametrize(("context", "expected"), [({"namespace": "team"}, "team"), ({}, "default")])
def test_the_namespace_is_that_of_the_current_context(context: dict[str, str], expected: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    assert context_namespace(path) == expected


async def test_a_pod_that_admission_has_not_seen_is_explained_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await cluster(inventory("n"), pod("p", container(gpumem=99999))))
    reason = 'container "main": nvidia.com/gpu is missing because admission has not seen this pod; '
    ended = await commands.run("why", "p")
    assert (ended.code, ended.output) == (1, f"p cannot be placed: {reason}delete the pod and create it again\n")
    listed = await commands.run("pods")
    assert listed.output.splitlines()[-1] == f"(1) {reason}delete the pod and create it again"
