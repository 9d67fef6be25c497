"""The bound on how many pods fit is never below what one pod after another finds."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu, Mode
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest, SharingRules
from lamina.placement import NodeState, NodeTable, PodPlacement, fit, most_pods

MODEL, CARD, MEMORY = "NVIDIA A100-SXM4-40GB", "A100-40GB", 40960

rules = st.builds(
    SharingRules,
    most=st.none() | st.integers(1, 20),
    one_isolation=st.just(False),
    alone_below_mib=st.just(0),
)
containers = st.builds(
    ContainerRequest,
    container=st.sampled_from("ab"),
    count=st.integers(1, 2),
    memory_mib=st.sampled_from([1, 4000, 5000, 12_000, 20_000, 40_000]),
    memory_percent=st.none(),
    cores=st.sampled_from([0, 1, 30]),
    exclusive=st.booleans(),
    sharing=rules,
) | st.builds(
    ContainerRequest,
    container=st.sampled_from("ab"),
    count=st.integers(1, 2),
    memory_mib=st.none(),
    memory_percent=st.sampled_from([10, 50, 100]),
    cores=st.sampled_from([0, 50]),
    exclusive=st.booleans(),
)
requests = st.builds(
    PodRequest,
    dialect=st.just("hami"),
    containers=st.lists(containers, min_size=1, max_size=2).map(tuple),
    selector=st.sampled_from([GpuSelector(), GpuSelector(idle=True), GpuSelector(not_types=("T4",))]),
)
gpus = st.builds(
    Gpu,
    uuid=st.just(""),
    index=st.just(0),
    model=st.sampled_from([MODEL, "T4"]),
    memory_mib=st.just(MEMORY),
    capacity_mib=st.sampled_from([MEMORY // 2, MEMORY, 2 * MEMORY]),
    slots=st.integers(1, 10),
    cores_capacity=st.sampled_from([100, 200]),
    healthy=st.sampled_from([True, True, False]),
    modes=st.sampled_from([(), (Mode.QUOTA, Mode.MIG), (Mode.MIG,), (Mode.MPS,), (Mode.MPS, Mode.MIG)]),
    mig_card=st.just(CARD),
    mig_capable=st.just(True),
)
nodes = st.lists(st.lists(gpus, min_size=1, max_size=2), min_size=1, max_size=2)


@given(nodes, requests)
@settings(max_examples=500, deadline=None)
def test_no_more_pods_fit_than_the_bound_says(listed: list[list[Gpu]], request: PodRequest) -> None:
    named = {
        f"n{row}": [msgspec.structs.replace(gpu, uuid=f"{row}-{place}", index=place) for place, gpu in enumerate(node)]
        for row, node in enumerate(listed)
    }
    table = NodeTable()
    for name, node in named.items():
        table.put(NodeState.of(name, node))
    assert sum(placed(name, node, request) for name, node in named.items()) <= most_pods(request, table)


def placed(name: str, node: list[Gpu], request: PodRequest) -> int:
    """How many pods fit one after another."""
    taken: dict[str, Taken] = {}
    for count in range(100):
        placement = fit(request, NodeState.of(name, node, taken))
        if not isinstance(placement, PodPlacement):
            return count
        for uuid, more in taken_by(placement.containers).items():
            taken[uuid] = taken.get(uuid, NOTHING).plus(more)
    return 100
