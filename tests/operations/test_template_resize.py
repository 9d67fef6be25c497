"""The template of a workload gets another size, and no pod is replaced, whichever step is the last before a crash."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.configuration import DEFAULT
from lamina.dialects import WantedSize
from lamina.errors import BadInput, Outside
from lamina.operations.template_resize import PAUSED, TemplateResizer
from lamina.ports.kube import CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, Kube
from lamina_lab.controllers.run import run
from tests.lab_controllers.cluster import Kubelet, LabInProcess, deployment, template
from tests.worlds.clocks import settle
from tests.worlds.clusters import cron_job
from tests.worlds.deaths import Died, Life, mortal

GPU = {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}}


@pytest.fixture
async def cluster() -> AsyncIterator[LabInProcess]:
    made = LabInProcess()
    await made.add_node("n1")
    made.run(run(made.kube, made.clock, node_grace=1e9))
    made.run(Kubelet(made.api).run())
    await settle()
    yield made
    await made.stop()


async def web(cluster: LabInProcess, **spec: Any) -> set[str]:
    """The names of the pods of a Deployment that runs."""
    await cluster.create(DEPLOYMENTS, deployment(template=template({"app": "web"}, resources=GPU), **spec))
    await settle(1000)
    return names(cluster)


def names(cluster: LabInProcess) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.pods()}


async def resize(
    cluster: LabInProcess, kube: Kube | None = None, *, which: str = "deploy/web", rollout: bool = False
) -> str:
    templates = TemplateResizer(kube or cluster.kube, cluster.clock, DEFAULT)
    work = asyncio.ensure_future(templates.resize("default", which, "", WantedSize(6000, 30), rollout=rollout))
    while not work.done():
        await settle(20)
        await cluster.clock.advance(0.5)
    return await work


def memory(cluster: LabInProcess) -> set[str]:
    return {
        each["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"]
        for resource in (DEPLOYMENTS, REPLICA_SETS)
        for each in cluster.all(resource)
    }


async def test_the_pods_of_a_deployment_stay_and_later_ones_have_the_new_size(cluster: LabInProcess) -> None:
    before = await web(cluster, replicas=3)
    answer = await resize(cluster)
    await settle(1000)
    assert answer == "The template of Deployment web has the new size. No pod was replaced."
    assert names(cluster) == before and memory(cluster) == {"6000"} and len(cluster.all(REPLICA_SETS)) == 1
    found = await cluster.get(DEPLOYMENTS, "web")
    assert not found["spec"].get("paused") and PAUSED not in (found["metadata"].get("annotations") or {})
    await cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    await settle(1000)
    (new,) = [pod for pod in cluster.pods() if pod["metadata"]["name"] not in before]
    assert new["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] == "6000"
    assert await resize(cluster) == "The template of Deployment web has this size already."


async def test_a_crash_at_any_write_replaces_no_pod_and_the_next_try_ends_it(cluster: LabInProcess) -> None:
    before, at = await web(cluster, replicas=2), 0
    while True:
        life = Life(at)
        try:
            await resize(cluster, mortal(cluster.kube, life))
        except Died:
            await settle(1000)
            assert names(cluster) == before
            await resize(cluster)
        await settle(1000)
        assert names(cluster) == before and memory(cluster) == {"6000"}
        assert not (await cluster.get(DEPLOYMENTS, "web"))["spec"].get("paused")
        if not life.over:
            assert at >= 6
            return
        at += 1
        await cluster.delete(DEPLOYMENTS, "web")
        await settle(1000)
        before = await web(cluster, replicas=2)


async def test_a_deployment_that_is_paused_already_stays_paused(cluster: LabInProcess) -> None:
    before = await web(cluster)
    await cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await resize(cluster)
    await settle(1000)
    assert names(cluster) == before and memory(cluster) == {"6000"}
    assert (await cluster.get(DEPLOYMENTS, "web"))["spec"]["paused"]


async def test_a_template_changed_at_once_would_replace_the_pods(cluster: LabInProcess) -> None:
    """What the steps are for, and what --rollout asks for."""
    before = await web(cluster)
    answer = await resize(cluster, rollout=True)
    await settle(3000)
    assert answer == "The template of Deployment web has the new size. Its pods are replaced."
    assert not names(cluster) & before


async def test_during_a_rollout_a_template_is_left_alone(cluster: LabInProcess) -> None:
    await web(cluster)
    await cluster.change(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": {"annotations": {"new": "1"}}}}})
    with pytest.raises(BadInput, match="Deployment web has a rollout that has not ended; wait for it"):
        await resize(cluster)


async def test_a_deployment_without_a_controller_stays_paused_and_says_so(cluster: LabInProcess) -> None:
    await web(cluster)
    await cluster.stop()
    with pytest.raises(Outside, match="Deployment web is still paused"):
        await resize(cluster)


@pytest.mark.parametrize(("strategy", "changed"), [("OnDelete", True), ("RollingUpdate", False)])
async def test_daemon_sets_say_what_happens(cluster: LabInProcess, strategy: str, changed: bool) -> None:
    labels = {"app": "db"}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels, resources=GPU)}
    db = {"metadata": {"name": "db", "namespace": "default"}, "spec": {**spec, "updateStrategy": {"type": strategy}}}
    await cluster.create(DAEMON_SETS, db)
    answer = await resize(cluster, which="ds/db")
    limits = (await cluster.get(DAEMON_SETS, "db"))["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert (limits["nvidia.com/gpumem"] == "6000") is changed
    assert answer.startswith("The template of DaemonSet db " + ("has the new size." if changed else "was not changed"))


@pytest.mark.parametrize("rollout", [True, False])
async def test_a_cron_job_changes_for_the_jobs_that_it_creates_later(cluster: LabInProcess, rollout: bool) -> None:
    of_pods = template({"app": "web"}, resources=GPU)
    of_pods["spec"]["restartPolicy"] = "Never"
    await cluster.create(CRON_JOBS, cron_job(deployment(template=of_pods)))
    answer = await resize(cluster, which="cj/web", rollout=rollout)
    assert answer == "The template of CronJob web has the new size. No pod was replaced."
    spec = (await cluster.get(CRON_JOBS, "web"))["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] == "6000"
    assert await resize(cluster, which="cj/web") == "The template of CronJob web has this size already."
