"""What would have to change on a node: a smaller request is suggested only where it fits."""

import pytest

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement import Cause, Misfit, NodeState, fit
from lamina.report.remedies import _WAYS, node_remedies
from tests.placement.nodes import ask, missed, node, request

GPU = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=10000, capacity_mib=10000, slots=3)
FREE_1000 = "wait until 1000 MiB more are free on a GPU of the node"


def found(taken: Taken, *, gpus: int = 1, types: tuple[str, ...] = (), **changed: int) -> list[str]:
    asked = {"count": 1, "memory_mib": 1000} | changed
    selector = GpuSelector(types=types)
    pod = PodRequest(dialect="hami", containers=(ContainerRequest(container="main", **asked),), selector=selector)
    misfit = fit(pod, NodeState.of("n", [GPU] * gpus, {"GPU-0": taken}))
    assert isinstance(misfit, Misfit)
    return list(node_remedies(pod, misfit))


@pytest.mark.parametrize(
    ("taken", "request_", "expected"),
    [
        (
            Taken(1, 8000, 10),
            {"memory_mib": 3000},
            ["request at most 2000 MiB", FREE_1000],
        ),
        (Taken(1, 10000, 10), {}, [FREE_1000]),
        (
            Taken(1, 100, 80),
            {"cores": 30},
            ["request at most 20 %", "wait until 10 % more of the time of a GPU of the node are free"],
        ),
        (
            Taken(1, 8000, 80),
            {"memory_mib": 3000, "cores": 30},
            [FREE_1000],
        ),
        (Taken(), {"memory_mib": 10001}, ["request at most 10000 MiB", "add a node with larger GPUs"]),
        (Taken(), {"count": 2}, ["request at most 1 GPUs", "add a node with more GPUs"]),
        (Taken(3, 300, 0), {}, ["wait until a container ends, or raise `sharing.slots` in the configuration"]),
        (Taken(1, 10000, 100, True), {}, ["wait until a pod with a whole GPU ends, or add a node"]),
    ],
)
def test_remedies_have_the_numbers_of_the_node(taken: Taken, request_: dict[str, int], expected: list[str]) -> None:
    assert found(taken, **request_) == expected


def test_what_selects_another_gpu_is_named() -> None:
    assert found(Taken(), types=("A100",)) == [
        "change the GPU type that the pod asks for, or add a node with such GPUs"
    ]


def test_a_smaller_request_and_a_larger_quota_would_help() -> None:
    wanted = request(ask(percent=50)).within(QuotaRoom(memory=QuotaLimit("q", "gpumem", 5000, 0)))
    assert list(node_remedies(wanted, missed(fit(wanted, node())))) == [
        "request at most 5000 MiB",
        "raise the quota of the namespace, or wait until one of its pods ends",
    ]


def test_every_cause_has_a_way_out() -> None:
    assert set(Cause) - set(_WAYS) == set()
