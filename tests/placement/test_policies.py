import pytest

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.placement import fit
from tests.placement.nodes import ask, gpus, node, placed, request, uuids

SOME = {"GPU-1": Taken(1, 8000, 20), "GPU-2": Taken(2, 16000, 40)}


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("binpack", ["GPU-2", "GPU-1", "GPU-0"]),
        ("spread", ["GPU-0", "GPU-1", "GPU-2"]),
        ("", ["GPU-0", "GPU-1", "GPU-2"]),
    ],
)
def test_the_gpu_policy_says_which_gpu_is_first(policy: str, order: list[str]) -> None:
    for count in (1, 2, 3):
        answer = fit(request(ask(1000, 10, count=count), gpu_policy=policy), node(gpus(3), SOME))
        assert uuids(answer) == order[:count]


def test_binpack_skips_a_fuller_gpu_without_free_capacity() -> None:
    assert uuids(fit(request(ask(20000), gpu_policy="binpack"), node(gpus(3), SOME))) == ["GPU-1"]


def test_the_share_itself_counts_so_that_unequal_gpus_compare_rightly() -> None:
    mixed = (*gpus(1), Gpu(uuid="GPU-big", index=1, model="H100", memory_mib=81920, capacity_mib=81920))
    assert uuids(fit(request(ask(20000), gpu_policy="spread"), node(mixed))) == ["GPU-big"]
    assert uuids(fit(request(ask(20000), gpu_policy="binpack"), node(mixed))) == ["GPU-0"]


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_ties_go_by_numa_node_then_by_index(policy: str) -> None:
    near = [
        Gpu(uuid=uuid, index=index, model="x", memory_mib=100, capacity_mib=100, numa=numa)
        for uuid, index, numa in (("GPU-c", 2, 0), ("GPU-a", 0, 1), ("GPU-b", 1, 0))
    ]
    assert uuids(fit(request(ask(10, count=3), gpu_policy=policy), node(near))) == ["GPU-b", "GPU-c", "GPU-a"]


@pytest.mark.parametrize("policy", ["binpack", "spread", ""])
@pytest.mark.parametrize(
    ("taken", "fullness"),
    [
        ({}, 0.0),
        ({"GPU-0": Taken(2, 600, 50)}, (2 / 8 + 600 / 2000 + 50 / 200) / 3),
        ({"GPU-0": Taken(4, 1000, 100), "GPU-1": Taken(3, 999, 99)}, (7 / 8 + 1999 / 2000 + 199 / 200) / 3),
    ],
)
def test_a_nodes_score_is_0_to_10_by_what_is_taken_before(
    policy: str, taken: dict[str, Taken], fullness: float
) -> None:
    state = node(gpus(2, memory=1000, slots=4), taken)
    score = placed(fit(request(ask(1), node_policy=policy), state)).score
    assert score == pytest.approx(10 * (1 - fullness if policy == "spread" else fullness))
