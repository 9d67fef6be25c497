"""What the packing policy is trained on: draws that repeat by seed, and no list as it stands."""

import numpy as np
import pytest

from bench.packing.traces import GPU, Pod
from bench.packing.train.workloads import reweighted
from lamina.placement.packing import REFUSED, Ask

PODS = [
    *[Pod(Ask(4000, 0, 0, (0, 0), 0), 0)] * 30,
    *[Pod(Ask(4000, 0, 1, (470, 470), 470), 470)] * 30,
    *[Pod(Ask(8000, 0, 1, (1000, REFUSED), 1000), GPU)] * 30,
    *[Pod(Ask(9000, 0, 8, (1000, 1000), 1000), 8 * GPU)] * 10,
]


def drawn(seed: int) -> list[Pod]:
    return reweighted(PODS, np.random.default_rng(seed))


def test_draws_repeat_by_seed_and_differ_between_seeds() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_every_sort_becomes_rarer_and_more_frequent() -> None:
    for gpus in (0, 1, 8):
        often = [sum(pod.ask.gpus == gpus for pod in drawn(seed)) for seed in range(40)]
        usual = sum(pod.ask.gpus == gpus for pod in PODS)
        assert min(often) < usual < max(often)


def test_some_pods_lose_their_wish_and_nothing_else() -> None:
    for seed in range(20):
        for pod in drawn(seed):
            assert pod in PODS or pod.ask == Ask(8000, 0, 1, (1000, 1000), 1000)


def test_falling_behind_costs_more_than_a_lead_gains() -> None:
    pytest.importorskip("cma")
    from bench.packing.train.__main__ import FIRST_TRAINING, FIRST_VALIDATION, coordinates, utility, weights_of
    from lamina.placement.packing.trained import TRAINED
    from lamina.placement.packing.waste import vector

    assert utility(np.array([0.5, 0.5])) > utility(np.array([1.0, 0.0])) > 0 > utility(np.array([0.5, -0.5]))
    assert vector(weights_of(coordinates(TRAINED))) == pytest.approx(vector(TRAINED))
    assert 51 < FIRST_TRAINING < FIRST_VALIDATION
