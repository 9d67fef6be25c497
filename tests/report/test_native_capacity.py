"""Native devices are counted as kube-scheduler counts: what pods request, and what a node has left."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.placement import Cause
from lamina.ports.kube import Object
from lamina.report.native_capacity import counted, missing
from tests.worlds.clusters import container, inventory, pod

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


def sidecar(name: str, **limits: int) -> Object:
    return container(name, **limits) | {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("main", "inits", "expected"),
    [
        ([], [], {}),
        ([container()], [], {}),
        ([container(gpu=1)], [], {GPU: 1}),
        ([container("a", gpu=1), container("b", gpu=2)], [], {GPU: 3}),
        ([container(gpu=1, mig_1g_5gb=2)], [], {GPU: 1, MIG: 2}),
        ([container(gpu_shared=2)], [], {"nvidia.com/gpu.shared": 2}),
        ([container(gpu=1)], [container("i", gpu=3)], {GPU: 3}),
        ([container(gpu=3)], [container("i", gpu=1)], {GPU: 3}),
        ([container(gpu=1)], [container("i", gpu=2), container("j", gpu=2)], {GPU: 2}),
        ([container(gpu=1)], [sidecar("s", gpu=2)], {GPU: 3}),
        ([container()], [container("i", mig_1g_5gb=1)], {MIG: 1}),
        ([container(gpumem=1000)], [], {}),
    ],
)
def test_what_a_pod_counts(main: list[Object], inits: list[Object], expected: dict[str, int]) -> None:
    assert counted(pod("p", *main, initContainers=inits)) == expected


def test_a_quantity_that_is_no_whole_number_counts_nothing() -> None:
    half: dict[str, Any] = {"name": "main", "resources": {"limits": {GPU: "500m"}}}
    assert counted(pod("p", half)) == {}
    thousand: dict[str, Any] = {"name": "main", "resources": {"limits": {GPU: "1k"}}}
    assert counted(pod("p", thousand)) == {GPU: 1000}


@given(st.lists(st.integers(0, 4), max_size=4), st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=4))
def test_the_count_is_what_containers_and_sidecars_hold_or_an_init_container(
    main: list[int], inits: list[tuple[bool, int]]
) -> None:
    containers = [container(f"m{index}", gpu=amount) for index, amount in enumerate(main)]
    early = [(sidecar if stays else container)(f"i{index}", gpu=amount) for index, (stays, amount) in enumerate(inits)]
    together = sum(main) + sum(amount for stays, amount in inits if stays)
    peak = max((amount for stays, amount in inits if not stays), default=0)
    assert counted(pod("p", *containers, initContainers=early)).get(GPU, 0) == max(together, peak)


@pytest.mark.parametrize(
    ("amount", "there", "taken", "reason", "cause"),
    [
        (1, 1, 0, None, None),
        (2, 2, 0, None, None),
        (1, 2, 1, None, None),
        (1, 0, 0, "needs 1 nvidia.com/gpu; this node offers 0", Cause.COUNT),
        (3, 2, 0, "needs 3 nvidia.com/gpu; this node offers 2", Cause.COUNT),
        (3, 2, 2, "needs 3 nvidia.com/gpu; this node offers 2", Cause.COUNT),
        (1, 2, 2, "all 2 nvidia.com/gpu are allocated", Cause.SLOTS),
        (1, 2, 5, "all 2 nvidia.com/gpu are allocated", Cause.SLOTS),
        (2, 4, 3, "needs 2 nvidia.com/gpu; 1 of 4 free", Cause.SLOTS),
    ],
)
def test_what_a_node_lacks(amount: int, there: int, taken: int, reason: str | None, cause: Cause | None) -> None:
    node = inventory("n", gpus=0, **({"gpu": there} if there else {}))
    others = [pod(f"other-{number}", container(gpu=1), node="n") for number in range(taken)]
    found = missing(pod("p", container(gpu=amount)), node, others)
    assert (found and found.reason, found and found.cause) == (reason, cause)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_only_pods_that_run_on_the_node_take_its_devices(phase: str) -> None:
    node, wanting = inventory("n", gpus=0, gpu=1), pod("p", container(gpu=1))
    ended = pod("ended", container(gpu=1), node="n", status={"phase": phase})
    elsewhere, waiting = pod("elsewhere", container(gpu=1), node="m"), pod("waiting", container(gpu=1))
    assert missing(wanting, node, [ended, elsewhere, waiting]) is None
    assert missing(wanting, node, [pod("runs", container(gpu=1), node="n")]) is not None


def test_every_resource_that_a_pod_counts_must_be_there() -> None:
    wanting = pod("p", container(gpu=1, mig_1g_5gb=2))
    assert missing(wanting, inventory("n", gpus=0, gpu=1, mig_1g_5gb=2), []) is None
    lacking = missing(wanting, inventory("n", gpus=0, gpu=1, mig_1g_5gb=1), [])
    assert lacking is not None and lacking.reason == "needs 2 nvidia.com/mig-1g.5gb; this node offers 1"


def test_a_pod_that_counts_nothing_lacks_nothing() -> None:
    assert missing(pod("p", container(gpumem=1000)), inventory("n", gpus=0), []) is None
