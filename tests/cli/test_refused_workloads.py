"""`lamina pods` lists workloads whose pods are refused, because such pods never exist."""

from typing import Any

import msgspec
import pytest

from lamina.ports.kube import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    NotFound,
    Refused,
    Resource,
)
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, cron_job, inventory, pod

SENTENCE = 'container "main": nvidia.com/gpucores must be an integer from 0 to 100, got 150'


def workload(percent: int = 150, name: str = "w", **rest: Any) -> dict[str, Any]:
    """`metadata` and `status` go there, everything else to its specification."""
    template = {"spec": {"containers": [container(gpu=1, gpucores=percent)]}}
    metadata = {"name": name, "namespace": "default", **rest.pop("metadata", {})}
    return {"metadata": metadata, "status": rest.pop("status", {}), "spec": {"template": template, **rest}}


async def listed(kube: FakeKube, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    return (await Commands(monkeypatch, kube).run("pods", *options)).output.splitlines()


@pytest.mark.parametrize("resource", [DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS])
async def test_each_kind_is_listed_with_the_sentence(resource: Resource, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("p", container(gpu=1)))
    await kube.create(resource, workload())
    _, first, second, *_, last = await listed(kube, monkeypatch)
    assert first.split()[0] == "p"
    assert second.split() == [f"{resource.kind.lower()}/w", "Refused", "(2)"]
    assert last == f"(2) {SENTENCE}"


@pytest.mark.parametrize(
    ("resource", "other"),
    [
        (DEPLOYMENTS, workload(percent=50)),
        (DEPLOYMENTS, workload(replicas=0)),
        (REPLICA_SETS, workload(metadata={"ownerReferences": [{"kind": "Deployment", "name": "w"}]})),
        (JOBS, workload(suspend=True)),
        (JOBS, workload(status={"conditions": [{"type": "Failed", "status": "True"}]})),
        (DEPLOYMENTS, workload(metadata={"namespace": "other"})),
    ],
)
async def test_others_are_not(resource: Resource, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(resource, other)
    assert await listed(kube, monkeypatch) == ["No pod in namespace default requests a GPU."]


async def test_a_cron_job_is_listed_and_its_jobs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(CRON_JOBS, cron_job(workload()))
    await kube.create(JOBS, workload(metadata={"ownerReferences": [{"kind": "CronJob", "name": "w"}]}))
    assert await listed(kube, monkeypatch, "-o", "name") == ["cronjob/w"]


async def test_selectors_and_documents_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(DEPLOYMENTS, workload(metadata={"labels": {"app": "a"}}))
    await kube.create(DEPLOYMENTS, workload(name="v"))
    (row,) = msgspec.json.decode("\n".join(await listed(kube, monkeypatch, "-l", "app=a", "-o", "json")))
    assert (row["pod"], row["status"], row["reason"]) == ("deployment/w", "Refused", SENTENCE)


async def test_who_may_not_list_them_is_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("p", container(gpu=1)))
    allowed = kube.list

    async def listing(resource: Resource, **options: str) -> Any:
        if resource in (DEPLOYMENTS, JOBS):
            raise Refused("no")
        return await allowed(resource, **options)

    monkeypatch.setattr(kube, "list", listing)
    ended = await Commands(monkeypatch, kube).run("pods", "-o", "name")
    warning = "Warning: you may not list deployments, jobs, so those whose pods are refused are missing"
    assert sorted(ended.output.splitlines()) == sorted([warning, "pod/p"])


async def test_a_server_without_some_kinds_is_asked_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(DEPLOYMENTS, workload())
    allowed = kube.list

    async def listing(resource: Resource, **options: str) -> Any:
        if resource in (STATEFUL_SETS, DAEMON_SETS):
            raise NotFound("the server could not find the requested resource")
        return await allowed(resource, **options)

    monkeypatch.setattr(kube, "list", listing)
    assert await listed(kube, monkeypatch, "-o", "name") == ["deployment/w"]
