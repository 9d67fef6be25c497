"""`lamina defrag` over a cluster whose controllers and agent are played here."""

import pytest

from lamina.core.gpus import CORDON
from lamina.defragmentation.plan import plan
from lamina.defragmentation.run import DefragRun
from lamina.errors import Outside
from lamina.ports.kube import DISRUPTION_BUDGETS, NODES, PODS
from lamina.ports.kube.fake import FakeKube
from lamina.report.cluster_reader import read
from tests.defragmentation.cluster import FragmentedKube
from tests.worlds.clocks import JumpingClock


async def defragment(kube: FakeKube) -> list[str]:
    work = DefragRun(kube, JumpingClock(), patience_s=60)
    cluster = await read(kube)
    return [line async for line in work.run(cluster, list(plan(cluster, 20)))]


async def test_the_pods_of_a_gpu_move_and_it_is_idle() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    assert await defragment(kube) == ["Moved default/a.", "GPU 0 of node n is idle."]
    assert kube.evicted == ["a"]
    assert kube.cordons == ["GPU-n-0", ""], "cordoned while the pod moves, and not longer"


@pytest.mark.parametrize(
    ("target", "agent", "reason", "evicted"),
    [
        ("", True, "no pod runs in place of default/a after 60 s", ["a"]),
        ("GPU-n-0", True, "default/a-new was placed on the GPU that was to become idle", ["a"]),
        ("GPU-n-1", False, "does not report GPU GPU-n-0 as cordoned; no pod was moved", []),
    ],
)
async def test_the_plan_is_aborted_when_a_step_does_not_happen(
    target: str, agent: bool, reason: str, evicted: list[str]
) -> None:
    kube = FragmentedKube(target, agent=agent)
    await kube.fill(a="GPU-n-0", d="GPU-n-0", b="GPU-n-1", c="GPU-n-1", e="GPU-n-1")
    with pytest.raises(Outside, match=reason):
        await defragment(kube)
    assert kube.evicted == evicted, "the other pod of the GPU stays"
    assert kube.cordons[-1] == "", "nothing stays cordoned"


async def test_a_disruption_budget_holds() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "s"}}},
        "status": {"disruptionsAllowed": 0},
    }
    await kube.create(DISRUPTION_BUDGETS, budget)
    with pytest.raises(Outside, match=r"pod default/a cannot be evicted: .*PodDisruptionBudget"):
        await defragment(kube)
    assert {each["metadata"]["name"] for each in (await kube.list(PODS)).items} == {"a", "b", "c"}
    assert kube.cordons[-1] == ""


async def test_a_gpu_that_was_cordoned_stays_cordoned() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    await kube.patch(NODES, "n", {"metadata": {"annotations": {CORDON: "GPU-n-0"}}})
    assert await defragment(kube) == ["Moved default/a.", "GPU 0 of node n is idle."]
    assert kube.cordons == ["GPU-n-0"]
