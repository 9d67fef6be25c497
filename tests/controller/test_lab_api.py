"""The controller against the lab's API server: real HTTPS, real webhook, real binds."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from lamina.controller.leadership import election
from lamina.errors import LaminaError
from lamina.ports.kube import GRANTS, MUTATING_WEBHOOKS, PODS, Object
from lamina.ports.kube.client import connect
from lamina_lab.api.http.kubelets import UnixKubelets
from lamina_lab.api.server import serve as serve_api
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningController]:
    monkeypatch.setattr(election, "LEADS_S", 600.0)  # no other replica wants to lead, however rarely this one renews
    server = await serve_api(UnixKubelets(lambda node: tmp_path / node))
    server.write_kubeconfig(tmp_path / "kubeconfig")
    kube = await connect(tmp_path / "kubeconfig")
    async with running(kube, tmp_path) as made:
        await until(lambda: _registered(made))
        yield made
    await kube.close()
    await server.close()


async def _registered(made: RunningController) -> bool:
    return bool((await made.kube.list(MUTATING_WEBHOOKS)).items)


async def test_a_pod_is_admitted_filtered_bound_and_marked(cluster: RunningController) -> None:
    pod = await cluster.make(admitted_pod(gpumem=10000, gpucores=10))
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert (await cluster.scheduler.filter(pod, "node-0"))["nodenames"] == ["node-0"]
    assert await cluster.scheduler.bind(pod, "node-0") == ""
    (grant,) = (await cluster.kube.list(GRANTS)).items
    assert grant["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert grant["spec"]["containers"][0]["shares"][0]["memoryMiB"] == 10000

    async def marked() -> bool:
        bound = await cluster.kube.get(PODS, "pod", namespace="default")
        return "hami.io/vgpu-devices-allocated" in (bound["metadata"].get("annotations") or {})

    await until(marked)


async def test_nonsense_is_refused_in_one_sentence(cluster: RunningController) -> None:
    with pytest.raises(LaminaError, match="gpumem-percentage"):
        await cluster.make(admitted_pod(gpu=1, gpumem_percentage=101))


async def test_a_finished_pod_frees_its_share_and_a_deleted_one_its_grant(cluster: RunningController) -> None:
    for round in range(2):
        pods = [await cluster.make(admitted_pod(f"p{round}-{i}", gpu=1)) for i in range(2)]
        for pod in pods:
            await until(partial(_fits, cluster, pod))
            assert await cluster.scheduler.bind(pod, "node-0") == ""
        for pod in pods:
            done = {"status": {"phase": "Succeeded"}}
            name = pod["metadata"]["name"]
            await cluster.kube.patch(PODS, name, done, namespace="default", subresource="status")
    assert len((await cluster.kube.list(GRANTS)).items) == 4
    for pod in (await cluster.kube.list(PODS)).items:
        await cluster.kube.delete(PODS, pod["metadata"]["name"], namespace="default", uid=pod["metadata"]["uid"])
    await until(partial(_no_grants, cluster))


async def _fits(cluster: RunningController, pod: Object) -> bool:
    return bool((await cluster.scheduler.filter(pod, "node-0"))["nodenames"])


async def _no_grants(cluster: RunningController) -> bool:
    return not (await cluster.kube.list(GRANTS)).items


async def test_forty_binds_at_once_never_over_commit(cluster: RunningController) -> None:
    pods = [await cluster.make(admitted_pod(f"p{i}", gpumem=3000)) for i in range(40)]
    errors = await asyncio.gather(*(cluster.scheduler.bind(pod, "node-0") for pod in pods))
    assert sum(not error for error in errors) == 20, errors
    grants = (await cluster.kube.list(GRANTS)).items
    held: dict[str, int] = {}
    for grant in grants:
        share = grant["spec"]["containers"][0]["shares"][0]
        held[share["gpu"]] = held.get(share["gpu"], 0) + share["memoryMiB"]
    assert held == {gpu.uuid: 30000 for gpu in gpus()}
