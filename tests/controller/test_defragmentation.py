"""Defragmentation by the controller: its budget, its record, and what a crash or another leader leaves."""

import pytest

from lamina.controller.assembly import Controller
from lamina.controller.eviction.defrag_record import HOUR_S, NAME, DefragRecord, RecordStore
from lamina.controller.eviction.defragmentation import ABORTED, FREED, MOVED
from lamina.core.gpus import CORDON
from lamina.errors import Outside
from lamina.ports.kube import DISRUPTION_BUDGETS, EVENTS, LEASES, NODES, PODS
from lamina.ports.kube.fake import FakeKube
from tests.controller.defrag_controller import Role, controller
from tests.defragmentation.cluster import FragmentedKube
from tests.worlds.clocks import JumpingClock
from tests.worlds.deaths import Died, Life, mortal


async def reasons(kube: FakeKube) -> list[str]:
    return sorted(event["reason"] for event in (await kube.list(EVENTS)).items)


def figures(made: Controller) -> dict[str, float]:
    found = {sample.name + str(sample.labels.get("outcome", "")): sample.value
             for family in made.metrics.registry.collect() for sample in family.samples
             if family.name.startswith("lamina_defragmentation")}  # fmt: skip
    return {
        name.removeprefix("lamina_defragmentation_"): value for name, value in found.items() if "created" not in name
    }


async def cordon_of(kube: FakeKube) -> str:
    return str(((await kube.get(NODES, "n"))["metadata"].get("annotations") or {}).get(CORDON) or "")


async def record_of(kube: FakeKube) -> DefragRecord:
    return await RecordStore(kube, "reader").take()


async def full() -> FragmentedKube:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    return kube


async def test_a_round_frees_a_gpu_and_says_so() -> None:
    kube = await full()
    made = controller(kube, JumpingClock())
    work = made.evictions.defragmentation
    await work.reconcile()
    await work.reconcile()
    assert kube.evicted == ["a"], "once the GPU is idle there is nothing to do"
    assert await reasons(kube) == [FREED, MOVED]
    assert figures(made) == {"moved_pods_total": 1, "totalfreed": 1}


async def test_it_is_off_by_default_and_only_the_leader_moves_pods() -> None:
    kube = await full()
    await controller(kube, JumpingClock(), moves=0).evictions.defragmentation.reconcile()
    await controller(kube, JumpingClock(), role=Role(False)).evictions.defragmentation.reconcile()
    assert kube.evicted == [] and kube.cordons == []


async def test_the_budget_of_an_hour_outlives_the_replica() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    clock = JumpingClock()
    await controller(kube, clock, moves=1).evictions.defragmentation.reconcile()
    await kube.place("d", "GPU-n-0")
    await controller(kube, clock, moves=1, identity="two").evictions.defragmentation.reconcile()
    assert kube.evicted == ["a"]
    await clock.sleep(HOUR_S)
    await controller(kube, clock, moves=1, identity="two").evictions.defragmentation.reconcile()
    assert kube.evicted == ["a", "d"]


async def test_an_aborted_step_is_reported_and_its_pods_stay_for_an_hour() -> None:
    kube, clock = FragmentedKube(""), JumpingClock()
    await kube.fill(a="GPU-n-0", d="GPU-n-0", b="GPU-n-1", c="GPU-n-1", e="GPU-n-1")
    made = controller(kube, clock)
    work = made.evictions.defragmentation
    for _ in range(3):
        await work.reconcile()
    assert len(kube.evicted) == 1, "the plan is aborted, and not made again"
    assert await reasons(kube) == [ABORTED, MOVED] and await cordon_of(kube) == ""
    assert figures(made) == {"moved_pods_total": 1, "totalaborted": 1}
    await clock.sleep(HOUR_S)
    await work.reconcile()
    assert len(kube.evicted) == 2


async def test_pods_that_a_budget_holds_are_left_out_of_the_plan() -> None:
    kube = await full()
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "s"}}},
        "status": {"disruptionsAllowed": 0},
    }
    await kube.create(DISRUPTION_BUDGETS, budget)
    await controller(kube, JumpingClock()).evictions.defragmentation.reconcile()
    assert kube.cordons == [] and await reasons(kube) == []


async def test_a_leader_that_is_replaced_moves_nothing_more() -> None:
    kube, clock, role = await full(), JumpingClock(), Role()

    kube.failing["get"] = lambda resource, name: role.replaced() if resource == LEASES else None
    await controller(kube, clock, role=role).evictions.defragmentation.reconcile()
    assert kube.evicted == [] and kube.cordons == []


async def test_only_one_replica_can_write_the_record() -> None:
    kube = FakeKube()
    one, two = RecordStore(kube, "one"), RecordStore(kube, "two")
    await one.take()
    await two.take()
    with pytest.raises(Outside, match="changed by another replica"):
        await one.write(DefragRecord((1,)))
    await two.write(DefragRecord((2,), ("n", "GPU-1")))
    assert await two.take() == DefragRecord((2,), ("n", "GPU-1"))


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("at", range(12))
async def test_after_a_crash_at_any_write_the_next_leader_settles_everything(at: int, applied: bool) -> None:
    kube, clock = await full(), JumpingClock()
    life = Life(2 * at + applied)
    try:
        await controller(mortal(kube, life), clock, moves=1).evictions.defragmentation.reconcile()  # type: ignore[arg-type]
    except Died:
        pass
    else:
        assert not life.over
    known = (await record_of(kube)).moves
    assert len(kube.evicted) <= len(known), "a move is recorded before it happens"
    await controller(kube, clock, moves=1, identity="two").evictions.defragmentation.reconcile()
    assert await cordon_of(kube) == "" and (await record_of(kube)).cordoned is None
    assert len(kube.evicted) <= 1 and len((await kube.list(PODS)).items) == 3
    assert (await kube.get(LEASES, NAME, namespace="lamina-system"))["spec"]["holderIdentity"]
    await clock.sleep(HOUR_S)
    await controller(kube, clock, moves=1, identity="two").evictions.defragmentation.reconcile()
    assert kube.evicted == ["a"], "an hour later at the latest, the GPU is freed"
