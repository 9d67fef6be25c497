"""Which replicas and GPUs a container should get of those that are left."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.agent.inventory.native_devices import unit_uuid
from lamina.agent.kubelet.plugin import prefer_connected, prefer_replicas

GPUS = ("GPU-a", "GPU-b", "GPU-c")
EVERY = [f"{gpu}::{n}" for gpu in GPUS for n in range(4)]
POLICIES = ("distributed", "packed")


@given(st.sets(st.sampled_from(EVERY), min_size=1), st.integers(1, 6), st.sampled_from(POLICIES), st.data())
def test_as_many_as_asked_and_no_gpu_twice_while_another_is_free(
    available: set[str], size: int, policy: str, data: st.DataObject
) -> None:
    size = min(size, len(available))
    required = sorted(data.draw(st.sets(st.sampled_from(sorted(available)), max_size=size)))
    chosen = prefer_replicas(sorted(available), required, size, EVERY, policy)
    assert len(set(chosen)) == len(chosen) == size
    assert set(required) <= set(chosen) <= available
    mine, left = Counter(map(unit_uuid, chosen)), Counter(map(unit_uuid, available - set(chosen)))
    added = Counter(map(unit_uuid, chosen[len(required) :]))
    for more in added:
        assert all(mine[more] - 1 <= mine[other] for other in left), (chosen, left)


@pytest.mark.parametrize(("policy", "gpu"), [("distributed", "GPU-c"), ("packed", "GPU-a")])
def test_one_replica_goes_where_fewest_or_most_are_taken(policy: str, gpu: str) -> None:
    available = ["GPU-a::3", "GPU-b::2", "GPU-b::3", *EVERY[8:]]
    assert [unit_uuid(each) for each in prefer_replicas(available, [], 1, EVERY, policy)] == [gpu]


def test_whole_gpus_are_the_best_connected_set() -> None:
    links = {"GPU-a": {"GPU-b": 10, "GPU-c": 120}, "GPU-b": {"GPU-c": 20, "GPU-a": 10}, "GPU-c": {}}
    assert sorted(prefer_connected(GPUS, [], 2, links)) == ["GPU-a", "GPU-c"]
    assert prefer_connected(GPUS, ["GPU-b"], 2, links) == ["GPU-b", "GPU-c"]
    assert prefer_connected(GPUS, [], 1, {}) == ["GPU-a"]
