"""Shares in the mode mps: parts of their own, one GPU for a container, and never together with shares by quota."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu, Mode
from lamina.core.grants import ComputePolicy, Share
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement import Cause, NodeState, NodeTable, PodPlacement, Survey, fit
from lamina.placement.explanation.sentences import sentence_of_shares
from lamina.placement.rules.refusal import refusal_of_shares
from lamina.placement.state.modes import MODES
from tests.placement.nodes import add, ask, gpus, missed, node, placed, request
from tests.placement.survey_agreement import check

MPS, QUOTA, MIG = Mode.MPS, Mode.QUOTA, Mode.MIG
A30 = "A30-24GB"
ONLY_MPS, ONLY_QUOTA = GpuSelector(modes=(MPS,)), GpuSelector(modes=(QUOTA,))


def sharing(*modes: Mode, count: int = 1, **changes: object) -> list[Gpu]:
    return [msgspec.structs.replace(gpu, modes=modes, **changes) for gpu in gpus(count)]


def share_of(placement: PodPlacement) -> Share:
    [container] = placement.containers
    [share] = container.shares
    return share


def test_a_share_is_a_part_of_the_processors_and_of_the_memory() -> None:
    wanted = request(ask(3000, 30))
    share = share_of(placed(fit(wanted, node(sharing(MPS)))))
    assert (share.mode, share.memory_mib, share.cores) == (MPS, 3000, 30)
    assert share.compute_policy is ComputePolicy.THREADS and not share.exclusive
    assert share_of(placed(fit(request(ask(3000, 0)), node(sharing(MPS))))).compute_policy is ComputePolicy.NONE


def test_idle_time_is_not_lent_beyond_the_part_but_memory_is() -> None:
    elastic = msgspec.structs.replace(ask(3000, 30), most_cores=60, most_memory_mib=6000)
    share = share_of(placed(fit(request(elastic), node(sharing(MPS)))))
    assert (share.most_cores, share.limit_mib) == (0, 6000)


def test_a_whole_gpu_is_a_client_that_is_alone() -> None:
    answer = placed(fit(request(ask()), node(sharing(MPS))))
    share = share_of(answer)
    assert (share.mode, share.exclusive, share.compute_policy) == (MPS, True, ComputePolicy.NONE)
    assert missed(fit(request(ask(100)), node(sharing(MPS), add({}, answer)))).cause is Cause.HELD


@pytest.mark.parametrize("modes", [each for n in (1, 2) for each in itertools.permutations((QUOTA, MPS), n)])
@pytest.mark.parametrize("selector", [GpuSelector(), ONLY_MPS, ONLY_QUOTA])
def test_an_idle_gpu_takes_the_preferred_mode_that_the_pod_accepts(
    modes: tuple[Mode, ...], selector: GpuSelector
) -> None:
    accepted = [mode for mode in modes if not selector.modes or mode in selector.modes]
    answer = fit(request(ask(100, 10), selector=selector), node(sharing(*modes)))
    if accepted:
        assert share_of(placed(answer)).mode is accepted[0]
    else:
        assert missed(answer).cause is Cause.NOT_ALLOWED


@pytest.mark.parametrize("first", [ONLY_MPS, ONLY_QUOTA])
def test_a_gpu_in_use_stays_in_its_mode(first: GpuSelector) -> None:
    both = sharing(QUOTA, MPS)
    answer = placed(fit(request(ask(100, 10), selector=first), node(both)))
    taken, mode = add({}, answer), share_of(answer).mode
    assert share_of(placed(fit(request(ask(100, 10)), node(both, taken)))).mode is mode
    other = ONLY_QUOTA if first is ONLY_MPS else ONLY_MPS
    misfit = missed(fit(request(ask(100, 10), selector=other), node(both, taken)))
    assert misfit.cause is Cause.OTHER_MODE
    assert misfit.reason == f"pods keep the GPU in the mode {mode}; another mode is possible when it is idle"


def test_the_inventory_says_what_runs_on_a_gpu_whose_grants_are_not_known_yet() -> None:
    assert share_of(placed(fit(request(ask(100, 10)), node(sharing(QUOTA, MPS, mode=MPS))))).mode is MPS


def test_a_container_has_one_gpu() -> None:
    two = request(msgspec.structs.replace(ask(100, 10), count=2))
    misfit = missed(fit(two, node(sharing(MPS, count=2))))
    assert misfit.cause is Cause.ONE_GPU and misfit.lasting
    assert misfit.reason == "in the mode mps a container can have one GPU; it requests 2"
    shares = placed(fit(two, node(sharing(MPS, QUOTA, count=2)))).containers[0].shares
    assert {share.mode for share in shares} == {QUOTA}, "both in the other mode"
    containers = [ContainerRequest(container=f"c{n}", count=1, memory_mib=20000, cores=10) for n in range(2)]
    answer = placed(fit(request(*containers), node(sharing(MPS, count=2))))
    assert {share.gpu for each in answer.containers for share in each.shares} == {"GPU-0", "GPU-1"}


def test_shares_that_are_chosen_already_are_judged_by_the_same_rules() -> None:
    client = taken_by(placed(fit(request(ask(100, 10)), node(sharing(MPS)))).containers)["GPU-0"]
    [idle], [quota] = node(sharing(MPS, QUOTA)).gpus, node(sharing(QUOTA)).gpus
    assert refusal_of_shares(client, idle) is None
    assert refusal_of_shares(client, quota) is Cause.NOT_ALLOWED
    assert (
        sentence_of_shares(Cause.NOT_ALLOWED, client, quota) == "the pod accepts the mode mps; this node allows quota"
    )
    [kept] = node(sharing(MPS, QUOTA), {"GPU-0": Taken(1, 10, 10)}).gpus
    assert refusal_of_shares(client, kept) is Cause.OTHER_MODE
    [full] = node(sharing(MPS), {"GPU-0": Taken(1, 32768, 10, mps=True)}).gpus
    assert refusal_of_shares(client, full) is Cause.MEMORY


modes_lists = st.sampled_from([each for n in (1, 2, 3) for each in itertools.permutations(MODES, n)])
held = st.sampled_from(
    [NOTHING, Taken(1, 6000, 60), Taken(1, 6000, 60, mps=True), Taken(1, 24000, 100, True, mps=True)]
)
mixed_nodes = st.lists(st.tuples(modes_lists, st.sampled_from([None, MPS, QUOTA]), held), min_size=1, max_size=3)
wanted_pods = st.builds(
    lambda count, memory, cores, modes: PodRequest(
        dialect="hami",
        containers=(ContainerRequest(container="c", count=count, memory_mib=memory, cores=cores),),
        selector=GpuSelector(modes=modes),
    ),
    st.integers(1, 2),
    st.sampled_from([1000, 20000, 30000]),
    st.sampled_from([0, 30, 100]),
    st.sampled_from([(), (MPS,), (QUOTA,), (MIG,), (MPS, MIG)]),
)


@settings(max_examples=400)
@given(st.lists(mixed_nodes, min_size=1, max_size=3), wanted_pods)
def test_all_nodes_at_once_get_the_answer_of_each(
    listed: list[list[tuple[tuple[Mode, ...], Mode | None, Taken]]], wanted: PodRequest
) -> None:
    table, states = NodeTable(), {}
    for row, cells in enumerate(listed):
        cards = [
            Gpu(
                uuid=f"GPU-{row}-{place}",
                index=place,
                model=f"NVIDIA {A30}",
                memory_mib=24000,
                capacity_mib=24000,
                mig_capable=True,
                mig_card=A30,
                modes=modes,
                mode=mode,
            )
            for place, (modes, mode, _) in enumerate(cells)
        ]
        taken = {gpu.uuid: each for gpu, (_, _, each) in zip(cards, cells, strict=True)}
        states[f"n{row}"] = NodeState.of(f"n{row}", cards, taken)
        table.put(states[f"n{row}"])
    check(Survey(wanted, table), table, wanted, states)


@settings(max_examples=200)
@given(mixed_nodes, st.lists(wanted_pods, max_size=6))
def test_no_gpu_ever_serves_two_modes(
    cells: list[tuple[tuple[Mode, ...], Mode | None, Taken]], pods: list[PodRequest]
) -> None:
    cards = [
        msgspec.structs.replace(gpus(1)[0], uuid=f"GPU-{place}", index=place, modes=modes)
        for place, (modes, _, _) in enumerate(cells)
    ]
    taken: dict[str, Taken] = {}
    served: dict[str, set[Mode]] = {}
    for pod in pods:
        answer = fit(pod, node(cards, taken))
        if isinstance(answer, PodPlacement):
            taken = add(taken, answer)
            for share in answer.containers[0].shares:
                served.setdefault(share.gpu, set()).add(share.mode)
    assert all(len(modes) == 1 for modes in served.values())
    for gpu in cards:
        assert served.get(gpu.uuid, set()) <= set(gpu.modes)
