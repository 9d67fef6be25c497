"""The packing core in C against its definition, and what holds of every answer."""

import ctypes
import gc
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.packing.fgd import fgd
from lamina.placement.packing import Ask, Cluster, bits
from lamina.placement.packing.kernel import Kernel, remainders
from lamina.placement.packing.waste import Weights, waste
from tests.placement.packing_clusters import asks, clusters, library, mix_of, mixes, weights
from tests.placement.packing_definition import level


@pytest.fixture(scope="module")
def core() -> ctypes.CDLL:
    return library()


def levels(kernel: Kernel, ask: Ask, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    found, gpus = np.zeros(nodes), np.zeros(nodes, np.uint64)
    kernel.levels(ask, np.arange(nodes), found, gpus)
    return found, gpus


@settings(max_examples=100, deadline=None)
@given(cluster=clusters(), requests=mixes(), weighed=weights(), ask=asks(), published=st.booleans())
def test_the_core_computes_its_definition(
    core: ctypes.CDLL, cluster: Cluster, requests: dict[Ask, int], weighed: Weights, ask: Ask, published: bool
) -> None:
    capacity = cluster.full_memory, cluster.full_cores, cluster.supply()
    policy = fgd(requests, *capacity) if published else waste(mix_of(requests, cluster), weighed, core)
    nodes = len(cluster.cpu)
    found, gpus = levels(Kernel(core, cluster, policy), ask, nodes)
    for row in range(nodes):
        assert (found[row], int(gpus[row])) == level(cluster, policy, ask, row)


@pytest.mark.parametrize(
    "change", [{"gpus": 2**32 + 1}, {"gpu_cores": 2**31}, {"cpu": 2**63}, {"memory": 2**64}], ids=str
)
def test_the_core_refuses_what_its_types_cannot_hold(core: ctypes.CDLL, change: dict[str, int]) -> None:
    """4294967297 GPUs are not 1 GPU."""
    one, full = np.ones((1, 1), np.int32), np.array([100], np.int32)
    cluster = Cluster(np.array([1000]), np.array([1000]), one * 0, one * 100, one * 100, one, full, full)
    ask = Ask(0, 0, 1, (10,), 10)
    kernel = Kernel(core, cluster, waste(mix_of({ask: 1}, cluster), Weights(*[0.1] * 19), core))
    assert np.isfinite(levels(kernel, ask, 1)[0]).all()
    with pytest.raises(ValueError, match="the packing core cannot hold"):
        levels(kernel, ask._replace(**change), 1)


def test_however_many_requests_come_a_bounded_number_is_kept(core: ctypes.CDLL) -> None:
    one, full = np.ones((1, 1), np.int32), np.array([100], np.int32)
    cluster = Cluster(np.array([9000]), np.array([1000]), one * 0, one * 100, one * 100, one, full, full)
    ask = Ask(0, 0, 1, (10,), 10)
    kernel = Kernel(core, cluster, waste(mix_of({ask: 1}, cluster), Weights(*[0.1] * 19), core))
    before = len([each for each in gc.get_objects() if isinstance(each, Ask)])
    for cpu in range(3000):
        levels(kernel, ask._replace(cpu=cpu), 1)
    assert len([each for each in gc.get_objects() if isinstance(each, Ask)]) < before + 1500


@settings(max_examples=100, deadline=None)
@given(cluster=clusters(), requests=mixes(), ask=asks())
def test_a_level_is_given_where_the_pod_fits_and_nowhere_else(
    core: ctypes.CDLL, cluster: Cluster, requests: dict[Ask, int], ask: Ask
) -> None:
    nodes = len(cluster.cpu)
    found, gpus = levels(
        Kernel(core, cluster, waste(mix_of(requests, cluster), Weights(*[0.1] * 19), core)), ask, nodes
    )
    has_gpu = (cluster.kind >= 0).any(axis=1)
    assert (np.isfinite(found) == (cluster.feasible(ask) & has_gpu)).all()
    for row in np.flatnonzero(np.isfinite(found)).tolist():
        chosen = list(bits(int(gpus[row])))
        assert len(chosen) == ask.gpus
        assert cluster.gpus_for(ask)[row, chosen].all()
        cluster.take(row, int(gpus[row]), ask)
        assert cluster.cpu[row] >= 0 and cluster.memory[row] >= 0
        for free in (cluster.gpu_memory, cluster.gpu_cores, cluster.slots):
            assert (free[row, chosen] >= 0).all()


def test_rows_out_of_range_are_refused(core: ctypes.CDLL) -> None:
    full = np.array([1000], np.int32)
    cluster = Cluster(
        np.array([1000]), np.array([1000]), *(np.full((1, 1), n, np.int32) for n in (0, 1000, 100, 1)), full, full
    )
    ask = Ask(0, 0, 1, (500,), 50)
    kernel = Kernel(core, cluster, waste(mix_of({ask: 1}, cluster), Weights(*[0.1] * 19), core))
    for row in (-1, 1):
        with pytest.raises(ValueError, match="out of range"):
            kernel.levels(ask, np.array([row]), np.zeros(1), np.zeros(1, np.uint64))
    assert math.isinf(levels(kernel, ask._replace(gpu_memory=(1001,)), 1)[0][0])


@pytest.mark.parametrize(
    ("kinds", "full", "problem"), [([0], 0, "no memory or no cores"), ([1], 1000, "of kind 1, but there are 1 kinds")]
)
def test_kinds_that_make_no_sense_are_refused(core: ctypes.CDLL, kinds: list[int], full: int, problem: str) -> None:
    cells = [np.array([values], np.int32) for values in (kinds, [0], [0], [0])]
    capacity = np.array([full], np.int32)
    cluster = Cluster(np.zeros(1, np.int64), np.zeros(1, np.int64), *cells, capacity, capacity)
    with pytest.raises(ValueError, match=problem):
        Kernel(core, cluster, None)  # type: ignore[arg-type]


def test_arrays_of_another_type_are_refused(core: ctypes.CDLL) -> None:
    wrong = np.zeros(1, np.int32)
    gpus = np.zeros((1, 1), np.int32)
    cluster = Cluster(wrong, np.zeros(1, np.int64), gpus, gpus, gpus, gpus, wrong, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int64"):
        Kernel(core, cluster, None)  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(chance=st.lists(st.floats(0, 0.5), min_size=2, max_size=30))
def test_remainders_are_what_offers_leave(core: ctypes.CDLL, chance: list[float]) -> None:
    found = remainders(core, np.array(chance), (1, 5))
    left = [i / (len(chance) - 1) for i in range(len(chance))]
    for offer in range(1, 6):
        left = [
            now - sum(chance[s] * max(0.0, now - left[i - s]) for s in range(1, i + 1)) for i, now in enumerate(left)
        ]
        if offer in (1, 5):
            assert np.allclose(found[0 if offer == 1 else 1], left, atol=1e-9)
