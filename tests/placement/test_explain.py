"""What a person reads while a pod waits: true numbers, nodes counted by cause, the nearest miss."""

import pytest

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.placement import Cause, NodeState, explain, fit
from tests.placement.nodes import V100, ask, gpus, missed, node, request

FULL = {"GPU-0": Taken(3, 30000, 30), "GPU-1": Taken(3, 30000, 30)}


def reason(container: ContainerRequest, of: NodeState, selector: GpuSelector = GpuSelector()) -> str:  # noqa: B008
    return missed(fit(request(container, selector=selector), of)).reason


@pytest.mark.parametrize(
    ("container", "of", "selector", "sentence"),
    [
        (ask(10000), node(gpus(2), FULL), GpuSelector(), "needs 10000 MiB; the best GPU has 2768 MiB free"),
        (ask(percent=50), node(gpus(2), FULL), GpuSelector(), "needs 16384 MiB; the best GPU has 2768 MiB free"),
        (ask(1, 80), node(gpus(2), FULL), GpuSelector(), "needs 80 % of a GPU's time; the most free is 70 %"),
        (ask(), node(gpus(2), FULL), GpuSelector(), "whole GPU needed; none of 2 is idle"),
        (ask(), node(gpus(1), FULL), GpuSelector(), "whole GPU needed; it is not idle"),
        (ask(40000), node(gpus(2), FULL), GpuSelector(), "needs 40000 MiB; the largest GPU has 32768 MiB"),
        (
            ask(32768, 60),
            node(gpus(1, cores_capacity=50)),
            GpuSelector(),
            "needs 60 % of a GPU's time; at most 50 % can be granted",
        ),
        (ask(1), node(gpus(1), {"GPU-0": Taken(10, 10, 0)}), GpuSelector(), "all 10 slots are taken"),
        (
            ask(1),
            node(gpus(2), {f"GPU-{n}": Taken(10, 10, 0) for n in (0, 1)}),
            GpuSelector(),
            "all 10 slots of each GPU are taken",
        ),
        (
            ask(1),
            node(gpus(1), {"GPU-0": Taken(1, 1, 100, True)}),
            GpuSelector(),
            "the GPU is held whole by another pod",
        ),
        (
            ask(1),
            node(gpus(1), {"GPU-0": Taken(2, 2, 100)}),
            GpuSelector(),
            "the GPU's compute is fully allocated; a container without a compute limit would get no time",
        ),
        (ask(1), node(gpus(1)), GpuSelector(types=("A100",)), f"no GPU of type A100; this node has {V100}"),
        (
            ask(1),
            node(gpus(1)),
            GpuSelector(types=("A100", "H100")),
            f"no GPU of type A100 or H100; this node has {V100}",
        ),
        (
            ask(1),
            node(gpus(1)),
            GpuSelector(not_types=("V100",)),
            f"no GPU outside the excluded type V100; this node has {V100}",
        ),
        (ask(1), node(gpus(1)), GpuSelector(uuids=("GPU-9",)), "not among the GPUs that the pod names (GPU-9)"),
        (ask(1), node(gpus(1)), GpuSelector(not_uuids=("GPU-0",)), "excluded by the pod's list of UUIDs"),
        (ask(1), node(gpus(2, healthy=False)), GpuSelector(), "no healthy GPU"),
        (ask(1), node(gpus(2, healthy=False, reason="XID 79")), GpuSelector(), "no healthy GPU (XID 79)"),
        (ask(1), node(()), GpuSelector(), "no GPU is offered on this node"),
        (ask(1, count=3), node(gpus(2)), GpuSelector(), "needs 3 GPUs; this node has 2"),
        (
            ask(10000, count=2),
            node(gpus(2), {"GPU-1": Taken(3, 30000, 30)}),
            GpuSelector(),
            "needs 2 GPUs; 1 fits; on 1 of 2 GPUs: needs 10000 MiB; the best of them has 2768 MiB free",
        ),
        (
            ask(10000, 50),
            node(gpus(3), {"GPU-0": Taken(1, 1, 60), "GPU-1": Taken(1, 30000, 0), "GPU-2": Taken(1, 25000, 0)}),
            GpuSelector(),
            "on 1 of 3 GPUs: needs 50 % of a GPU's time; the most free is 40 %; "
            "on 2 of 3 GPUs: needs 10000 MiB; the best of them has 7768 MiB free",
        ),
    ],
)
def test_the_sentence_of_a_node(
    container: ContainerRequest, of: NodeState, selector: GpuSelector, sentence: str
) -> None:
    assert reason(container, of, selector) == sentence


def test_equal_nodes_are_one_group_and_the_nearest_miss_is_first() -> None:
    others = (Gpu(uuid="GPU-a", index=0, model="A30", memory_mib=8000, capacity_mib=8000),)
    nodes = [
        node((), name="bare"),
        node(gpus(2), FULL, name="full-1"),
        node(gpus(2), FULL, name="full-2"),
        node(gpus(1), {"GPU-0": Taken(1, 25000, 0)}, name="near"),
        node(others, name="small"),
    ]
    explanation = explain(request(ask(10000)), nodes)
    assert explanation.fitting == ()
    assert [(group.cause, group.nodes, group.lasting) for group in explanation.groups] == [
        (Cause.MEMORY, ("near",), False),
        (Cause.MEMORY, ("full-1", "full-2"), False),
        (Cause.SIZE, ("small",), True),
        (Cause.NO_GPU, ("bare",), True),
    ]
    assert explanation.summary == (
        "0 of 5 nodes fit: 3 short of memory, 1 with too small GPUs, 1 without a GPU; "
        "nearest is near: needs 10000 MiB; the best GPU has 7768 MiB free"
    )


def test_one_node_is_named_with_its_reason() -> None:
    assert explain(request(ask(10000)), [node(gpus(2), FULL)]).summary == (
        "node node-1: needs 10000 MiB; the best GPU has 2768 MiB free"
    )


def test_nodes_that_fit_are_named() -> None:
    names = [f"n{n}" for n in range(7)]
    explanation = explain(request(ask(1)), [node(name=name) for name in names])
    assert explanation.fitting == tuple(names)
    assert explanation.summary == "fits on 7 of 7 nodes: n0, n1, n2, n3, n4 ..."
    assert explanation.groups == ()


def test_without_nodes_the_summary_says_so() -> None:
    assert explain(request(ask(1)), []).summary == "no node offers GPUs"


def test_more_gpus_that_fit_are_nearer() -> None:
    half = node(gpus(2), {"GPU-0": Taken(3, 30000, 0)}, name="half")
    none = node(gpus(2), {gpu: Taken(1, 29000, 0) for gpu in ("GPU-0", "GPU-1")}, name="none")
    groups = explain(request(ask(10000, count=2)), [none, half]).groups
    assert [group.nodes for group in groups] == [("half",), ("none",)]
