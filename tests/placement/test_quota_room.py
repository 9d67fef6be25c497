"""What quotas leave bounds the choice of GPUs: exactly what is granted counts, GPU by GPU, and the reason says so."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu, Mode
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import GpuSelector, PodRequest
from lamina.placement import Cause, PodPlacement, counted, fit
from lamina.placement.rules.refusal import held_memory, refusal
from tests.placement.nodes import ask, gpus, missed, node, request, uuids
from tests.placement.strategies import gpu_lists, pods, rooms, takens


def unlike(*memories: int) -> tuple[Gpu, ...]:
    """GPUs with so much memory."""
    return tuple(
        Gpu(uuid=f"GPU-{index}", index=index, model=f"M{memory}", memory_mib=memory, capacity_mib=memory)
        for index, memory in enumerate(memories)
    )


def memory(hard: int, used: int = 0) -> QuotaRoom:
    return QuotaRoom(memory=QuotaLimit("q", "gpumem", hard, used))


def cores(hard: int, used: int = 0) -> QuotaRoom:
    return QuotaRoom(cores=QuotaLimit("q", "gpucores", hard, used))


@pytest.mark.parametrize("policy", ["binpack", "spread", "topology-aware", "numa,spread"])
@pytest.mark.parametrize(("asked", "hard"), [(ask(percent=50), 10000), (ask(), 16000)])
def test_a_share_goes_where_quotas_allow_it(policy: str, asked: object, hard: int) -> None:
    here = node(unlike(32768, 40960, 15360))
    wanted = request(asked, gpu_policy=policy)  # type: ignore[arg-type]
    assert uuids(fit(wanted.within(memory(hard)), here)) == ["GPU-2"]
    said = missed(fit(wanted.within(memory(5000)), here))
    assert said.cause is Cause.QUOTA and said.lasting
    least = 7680 if hard == 10000 else 15360
    assert said.reason == f"quota q allows 5000 of gpumem; 0 are used and the pod requests {least}"


def test_gpus_of_one_node_are_refused_each_for_its_own_reason() -> None:
    here = node(unlike(32768, 15360), {"GPU-1": Taken(1, 15360)})
    said = missed(fit(request(ask(percent=50)).within(memory(10000, 1000)), here))
    assert said.reason == (
        "on 1 of 2 GPUs: needs 7680 MiB; the best of them has 0 MiB free; "
        "on 1 of 2 GPUs: quota q allows 10000 of gpumem; 1000 are used and the pod requests 16384"
    )
    assert not said.lasting


@pytest.mark.parametrize("policy", ["binpack", "spread", "topology-aware"])
def test_several_gpus_of_a_container_count_together(policy: str) -> None:
    here = node(unlike(40000, 32000, 20000, 16000))
    wanted = request(ask(percent=50, count=2), gpu_policy=policy)
    assert set(uuids(fit(wanted.within(memory(18000)), here))) == {"GPU-2", "GPU-3"}
    assert set(uuids(fit(wanted.within(memory(26000)), here))) <= {"GPU-1", "GPU-2", "GPU-3"}
    said = missed(fit(wanted.within(memory(17999)), here))
    assert said.cause is Cause.QUOTA
    assert "quota q allows 17999 of gpumem; 0 are used and the pod requests" in said.reason


def test_containers_count_together_and_init_containers_by_their_peak() -> None:
    here = node(unlike(40000, 16000))
    both = request(ask(percent=50, name="a"), ask(percent=50, name="b"), gpu_policy="spread")
    assert {*uuids(fit(both.within(memory(16000)), here), 0)} == {"GPU-1"}
    assert missed(fit(both.within(memory(15999)), here)).cause is Cause.QUOTA
    starts = request(ask(percent=50, name="i", init=True), ask(percent=50, name="a"), gpu_policy="spread")
    assert uuids(fit(starts.within(memory(8000)), here), 1) == ["GPU-1"]


def test_compute_counts_as_memory_does() -> None:
    here = node(gpus(2))
    assert uuids(fit(request(ask(1000, 50, count=2)).within(cores(100)), here))
    said = missed(fit(request(ask(1000, 50, count=2)).within(cores(99)), here))
    assert said.reason == "quota q allows 99 of gpucores; 0 are used and the pod requests 100"
    assert missed(fit(request(ask(1000, 50)).within(cores(60, 20)), here)).numbers == (50, 40, "%")
    assert uuids(fit(request(ask(1000)).within(cores(0, 5)), here)), "who requests none exceeds nothing"


def test_instances_count_as_what_they_are() -> None:
    """A request of 1000 MiB gets an instance of 4864 MiB."""
    [shared] = unlike(40960)
    partitioned = Gpu(
        uuid="GPU-1",
        index=1,
        model="NVIDIA A100",
        memory_mib=40960,
        capacity_mib=40960,
        mig_capable=True,
        mig_card="A100-40GB",
        modes=(Mode.MIG,),
    )
    both = node((shared, partitioned))
    assert uuids(fit(request(ask(1000)).within(memory(2000)), both)) == ["GPU-0"]
    only = GpuSelector(modes=(Mode.MIG,))
    said = missed(fit(request(ask(1000), selector=only).within(memory(2000)), node((partitioned,))))
    assert said.reason == "quota q allows 2000 of gpumem; 0 are used and the pod requests 4864"
    assert missed(fit(request(ask(50000), selector=only).within(memory(2000)), node((partitioned,)))).cause is (
        Cause.PROFILE
    )


requests = st.builds(PodRequest.within, pods(), rooms(st.integers(0, 250), st.integers(0, 250)))


@settings(max_examples=300, deadline=None)
@given(st.data(), requests, gpu_lists)
def test_quotas_only_take_choices_away(data: st.DataObject, wanted: PodRequest, given_gpus: tuple[Gpu, ...]) -> None:
    here = node(given_gpus, {gpu.uuid: data.draw(takens) for gpu in given_gpus if data.draw(st.booleans())})
    answer, without = fit(wanted, here), fit(wanted.within(None), here)
    if isinstance(answer, PodPlacement):
        assert isinstance(without, PodPlacement)
        assert wanted.room is None or wanted.room.takes(*counted(answer.containers))
    elif isinstance(without, PodPlacement):
        assert answer.cause is Cause.QUOTA or Cause.QUOTA in answer.refusals
        assert "quota " in answer.reason
        assert wanted.room is not None and not wanted.room.takes(*counted(without.containers))
    else:
        assert answer.cause is not Cause.QUOTA or wanted.room is not None


@settings(max_examples=300, deadline=None)
@given(st.data(), requests, gpu_lists)
def test_one_container_gets_gpus_wherever_some_set_is_within_quotas(
    data: st.DataObject, wanted: PodRequest, given_gpus: tuple[Gpu, ...]
) -> None:
    [container, *_] = wanted.containers
    alone = request(container, gpu_policy=wanted.gpu_policy)
    here = node(given_gpus, {gpu.uuid: data.draw(takens) for gpu in given_gpus if data.draw(st.booleans())})
    able = [state for state in here.gpus if refusal(container, None, state) is None]
    sums = [
        (sum(held_memory(container, state) for state in chosen), container.cores * len(chosen))
        for chosen in combinations(able, container.count)
    ]
    possible = any(container.room is None or container.room.takes(*each) for each in sums)
    assert isinstance(fit(alone, here), PodPlacement) == possible


def test_what_is_placed_leaves_less() -> None:
    room = QuotaRoom(QuotaLimit("q", "gpumem", 100, 10), QuotaLimit("q", "gpucores", 50, 0))
    assert room.less(40, 20).takes(50, 30) and not room.less(40, 20).takes(51, 0) and not room.less(40, 20).takes(0, 31)
    assert room.less(400, 20).excess(1, 0) == "quota q allows 100 of gpumem; 410 are used and the pod requests 1"
