"""Packing decides over arrays by the same rules as `fit` does for one pod on one node."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement import NodeState, PodPlacement, fit
from lamina.placement.packing import REFUSED, Ask, Cluster
from lamina.placement.packing.mix import MAX_CLASSES, MAX_SHARES, Mix

MODELS = ("Tesla T4", "NVIDIA A100-SXM4-40GB")
CAPACITY = (15_360, 40_960)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeState, Cluster]:
    """A node as `fit` sees it and the same as arrays."""
    gpus, taken = [], {}
    for index in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 1))
        slots = draw(st.integers(0, 3))
        gpus.append(
            Gpu(
                uuid=f"GPU-{index}",
                index=index,
                model=MODELS[kind],
                memory_mib=CAPACITY[kind],
                capacity_mib=CAPACITY[kind],
                slots=3,
            )
        )
        memory = draw(st.integers(0, CAPACITY[kind])) if slots else 0
        taken[f"GPU-{index}"] = Taken(slots, memory, draw(st.sampled_from((0, 30, 100))) if slots else 0)
    state = NodeState.of("node", gpus, taken)
    cells = [[(MODELS.index(s.gpu.model), s.free_memory, s.free_cores, s.free_slots) for s in state.gpus]]
    kind, memory, cores, slots = (np.array(cells, np.int32)[:, :, i].copy() for i in range(4))
    full = np.array(CAPACITY, np.int32), np.array((100, 100), np.int32)
    plenty = np.array([10**9], np.int64)
    return state, Cluster(plenty, plenty.copy(), kind, memory, cores, slots, *full)


@settings(max_examples=100)
@given(
    both=nodes(),
    count=st.integers(1, 4),
    memory=st.sampled_from((0, 1, 4096, 15_360, 20_480, 40_960, 50_000)),
    cores=st.sampled_from((0, 10, 70, 99)),
    wish=st.sampled_from(("", "t4", "a100", "v100")),
)
def test_a_share_fits_by_arrays_where_it_fits_by_rule(
    both: tuple[NodeState, Cluster], count: int, memory: int, cores: int, wish: str
) -> None:
    state, cluster = both
    container = ContainerRequest(container="main", count=count, memory_mib=memory, cores=cores)
    request = PodRequest(dialect="hami", containers=(container,), selector=GpuSelector(types=(wish,) if wish else ()))
    wanted = tuple(memory if wish in model.lower() else REFUSED for model in MODELS)
    ask = Ask(0, 0, count, wanted, cores)
    assert bool(cluster.feasible(ask)[0]) == isinstance(fit(request, state), PodPlacement)


def mix(*asks: Ask) -> Mix:
    return Mix.of(asks, np.array(CAPACITY, np.int32), np.array((100, 100), np.int32), np.array([1, 1], np.int64))


def test_a_kind_is_accepted_up_to_all_of_its_memory_and_compute() -> None:
    bounds = [Ask(0, 0, 1, (memory, memory), cores) for memory in (15_360, 15_361) for cores in (100, 101)]
    for ask, accepted in zip(bounds, ([True, True], [False, False], [False, True], [False, False]), strict=True):
        assert mix(ask).accepted.tolist() == [accepted]
    assert mix(Ask(0, 0, 1, (REFUSED, 1), 0)).accepted.tolist() == [[False, True]]


def test_pods_without_gpus_are_no_kind_of_request_but_their_cpu_counts() -> None:
    found = mix(Ask(2000, 0, 1, (1, 1), 0), Ask(3000, 0, 0, (0, 0), 0))
    assert [ask.gpus for ask in found.asks] == [1] and found.all_cpu == 5000


def test_of_very_many_kinds_of_request_the_most_frequent_are_kept() -> None:
    """As many as the core takes: of shares, and of requests that differ in CPU alone."""
    shares = [Ask(0, 0, 1, (number + 1, 1), 0) for number in range(MAX_SHARES + 1)]
    often = [ask for ask in shares[1:] for _ in range(2)]
    assert set(mix(*shares, *often).asks) == set(shares[1:])
    by_cpu = [Ask(number, 0, 1, (1, 1), 0) for number in range(MAX_CLASSES + 1)]
    assert set(mix(*by_cpu, *by_cpu[1:]).asks) == set(by_cpu[1:])
