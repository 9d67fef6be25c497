"""Nodes that share GPUs by replicas next to nodes that grant whole ones."""

import pytest

from lamina.core.gpus import Gpu, Inventory, NativeResource
from lamina.core.sharing import GPU, Strategy
from lamina.operations.doctor.finding import State
from lamina.operations.doctor.mixed_sharing import mixed_sharing


def node(name: str, replicas: int = 0, resource: str = GPU, strategy: Strategy = Strategy.TIME_SLICING) -> Inventory:
    """With `replicas`, its GPU is offered natively; else shares of it are granted."""
    gpu = Gpu(uuid=f"GPU-{name}", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)
    if not replicas:
        return Inventory(node=name, gpus=(gpu,))
    native = (NativeResource(resource, replicas, replicas, strategy),)
    offered = Gpu(uuid=gpu.uuid, index=0, model=gpu.model, memory_mib=1, capacity_mib=1, native_resource=resource)
    return Inventory(node=name, gpus=(offered,), native_resources=native)


@pytest.mark.parametrize("strategy", [Strategy.TIME_SLICING, Strategy.MPS])
def test_a_count_that_means_two_things_is_a_warning_with_the_selector(strategy: Strategy) -> None:
    (found,) = mixed_sharing([node("c"), node("a", 4, strategy=strategy), node("b")])
    assert found.state is State.WARNING
    assert found.found == "a pod that requests only nvidia.com/gpu gets a replica on a, and a whole GPU on b, c"
    assert "nvidia.com/gpu.sharing-strategy: none" in found.fix


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [node("a"), node("b")],
        [node("a", 4), node("b", 4)],
        [node("a", 1), node("b")],
        [node("a", 4, "nvidia.com/gpu.shared"), node("b")],
    ],
)
def test_a_count_with_one_meaning_is_none(nodes: list[Inventory]) -> None:
    assert mixed_sharing(nodes) == []


def test_many_nodes_are_counted() -> None:
    (found,) = mixed_sharing([node("a", 4), *(node(f"n{index}") for index in range(8))])
    assert found.found.endswith("a whole GPU on n0, n1, n2, n3, n4 and 3 more nodes")
