"""Which quota a pod exceeds, and where that is said: in the events of the pod, which waits, and never at admission."""

from pathlib import Path

import pytest

from lamina.configuration import DEFAULT
from lamina.core.ledger import NOTHING, Taken
from lamina.dialects import parse
from lamina.ledger.quotas import ResourceQuotas, excess
from lamina.ports.kube import EVENTS, RESOURCE_QUOTAS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.admission_door import ask_admission
from tests.controller.cluster import running
from tests.waiting import until
from tests.worlds.objects import gpu_pod


def excess_of(pod: Object, quotas: ResourceQuotas, used: Taken = NOTHING) -> str:
    request = parse(pod, DEFAULT)
    assert request is not None
    return excess([request.within(quotas.room("default", DEFAULT, lambda: used))])


async def test_admission_answers_the_same_whatever_a_namespace_may_use_or_uses(tmp_path: Path) -> None:
    """Any pod of the network can ask it in the name of any namespace."""
    asked = [gpu_pod(namespace="victim", gpumem=1000), gpu_pod(namespace="victim", gpu=1, gpumem_percentage=50)]
    async with running(FakeKube(), tmp_path) as cluster:
        before = [await ask_admission(cluster, pod) for pod in asked]
        holding = await cluster.make(gpu_pod("holds", namespace="victim", gpu=1, gpumem=1000))
        assert await cluster.scheduler.bind(holding, "node-0") == ""
        hard = {"hard": {"limits.nvidia.com/gpumem": "1000", "limits.nvidia.com/gpucores": "0"}}
        await cluster.kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "victim"}, "spec": hard})
        waiting = await cluster.make(gpu_pod("waits", namespace="victim", gpu=1, gpumem=1000))
        reason = "quota q allows 1000 of nvidia.com/gpumem; 1000 are used and the pod requests 1000"

        async def refused() -> bool:
            return bool((await cluster.scheduler.filter(waiting, "node-0"))["error"] == reason)

        async def reported() -> bool:
            return reason in [event["message"] for event in (await cluster.kube.list(EVENTS, namespace="victim")).items]

        await until(refused)
        await until(reported)
        assert await cluster.scheduler.bind(waiting, "node-0") == reason
        assert [await ask_admission(cluster, pod) for pod in asked] == before
        assert all(b"quota" not in each and b'"allowed":true' in each for each in before)


@pytest.mark.parametrize(
    ("hard", "asked", "used", "words"),
    [
        ({"gpumem": "10000"}, {"gpumem": 4000}, Taken(2, 6000), ""),
        ({"gpumem": "10000"}, {"gpumem": 4001}, Taken(2, 6000), "allows 10000 of nvidia.com/gpumem; 6000 are used"),
        ({"gpumem": "10k"}, {"gpu": 2, "gpumem": 5001}, Taken(), "the pod requests 10002"),
        ({"gpucores": "50"}, {"gpumem": 1, "gpucores": 51}, Taken(), "allows 50 of nvidia.com/gpucores"),
        ({"gpucores": "50"}, {"gpumem": 1}, Taken(1, 1, 50), ""),
        ({"gpumem": "0"}, {"gpu": 1}, Taken(), "allows no nvidia.com/gpumem"),
        ({"gpumem": "nonsense"}, {"gpumem": 1}, Taken(), "allows 0 of nvidia.com/gpumem"),
        ({"gpumem": "1"}, {"gpu": 1, "gpumem_percentage": 50}, Taken(), ""),
        ({"cpu": "1"}, {"gpumem": 1}, Taken(), ""),
    ],
)
def test_quotas(hard: dict[str, str], asked: dict[str, int], used: Taken, words: str) -> None:
    quotas = ResourceQuotas()
    named = {f"limits.nvidia.com/{key}": value for key, value in hard.items()}
    quotas.observe({"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"hard": named}})
    reason = excess_of(gpu_pod(**asked), quotas, used)
    assert bool(reason) == bool(words) and words in reason
    assert quotas.of("other", DEFAULT) == []


def test_the_largest_init_container_counts_where_it_is_larger() -> None:
    quotas = ResourceQuotas()
    hard = {"limits.nvidia.com/gpumem": 999}
    quotas.observe({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
    pod = gpu_pod(gpumem=500)
    big = {"name": "init", "image": "x", "resources": {"limits": {"nvidia.com/gpumem": "1000"}}}
    pod["spec"]["initContainers"] = [big]
    assert "the pod requests 1000" in excess_of(pod, quotas)
    big["restartPolicy"] = "Always"
    assert "the pod requests 1500" in excess_of(pod, quotas)
