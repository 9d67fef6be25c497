"""HAMi's rules, a row each: what a container that requests this gets."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.core.grants import ComputePolicy
from lamina.core.requests import ContainerRequest
from lamina.dialects import parse
from tests.dialects.pods import asking, container, pod

SEED = load("hami: {defaultMemory: 5000, resourceCoreName: nvidia.com/cores}", "seed")


def only(manifest: dict[str, Any], config: Config = DEFAULT) -> ContainerRequest:
    request = parse(manifest, config)
    assert request is not None
    assert len(request.containers) == 1
    return request.containers[0]


def asked(config: Config = DEFAULT, **amounts: Any) -> tuple[int, int | None, int | None, int, bool]:
    request = only(asking(**amounts), config)
    return request.count, request.memory_mib, request.memory_percent, request.cores, request.exclusive


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"gpu": 1, "gpumem": 10000, "gpucores": 10}, (1, 10000, None, 10, False)),
        ({"gpu": 1, "gpumem": 3000}, (1, 3000, None, 0, False)),
        ({"gpu": 2, "gpumem": 8000}, (2, 8000, None, 0, False)),
        ({"gpumem": 3000}, (1, 3000, None, 0, False)),
        ({"gpucores": 30}, (1, None, 100, 30, False)),
        ({"gpucores": 0}, (1, None, 100, 0, False)),
        ({"gpumem_percentage": 50}, (1, None, 50, 0, False)),
        ({"gpu": 1}, (1, None, 100, 100, True)),
        ({"gpu": 4}, (4, None, 100, 100, True)),
        ({"gpu": 1, "gpumem_percentage": 100}, (1, None, 100, 100, True)),
        ({"gpumem_percentage": 100}, (1, None, 100, 100, True)),
        ({"gpu": 1, "gpumem_percentage": 100, "gpucores": 40}, (1, None, 100, 40, False)),
        ({"gpu": 1, "gpumem_percentage": 100, "gpucores": 0}, (1, None, 100, 0, False)),
        ({"gpu": 2, "gpumem_percentage": 50, "gpucores": 30}, (2, None, 50, 30, False)),
        ({"gpu": 1, "gpucores": 100}, (1, None, 100, 100, True)),
        ({"gpu": 1, "gpumem": 3000, "gpucores": 100}, (1, 3000, None, 100, False)),
    ],
)
def test_what_a_container_gets(amounts: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert asked(**amounts) == expected


@pytest.mark.parametrize("written", [10000, "10000", "10k", "1e4", "10000.0", "10000000m"])
def test_amounts_are_read_as_kubernetes_writes_them(written: object) -> None:
    assert asked(gpu=1, gpumem=written) == (1, 10000, None, 0, False)


@pytest.mark.parametrize(
    ("limits", "requests", "memory"),
    [
        ({"nvidia.com/gpumem": 10}, {}, 10),
        ({}, {"nvidia.com/gpumem": 20}, 20),
        ({"nvidia.com/gpumem": "1k"}, {"nvidia.com/gpumem": 1000}, 1000),
    ],
)
def test_a_limit_takes_precedence_over_a_request(limits: dict[str, Any], requests: dict[str, Any], memory: int) -> None:
    spec = {"name": "c", "resources": {"limits": limits, "requests": requests}}
    assert only(pod(spec)).memory_mib == memory


def test_default_memory_turns_a_count_alone_into_a_share() -> None:
    assert asked(SEED, gpu=1) == (1, 5000, None, 0, False)
    assert asked(SEED, **{"nvidia.com/cores": 30}) == (1, 5000, None, 30, False)
    assert asked(SEED, gpu=1, gpumem=100) == (1, 100, None, 0, False)
    assert asked(SEED, gpu=1, gpumem_percentage=100) == (1, None, 100, 100, True)


def test_priority_is_kept_and_absent_if_not_given() -> None:
    permitted = load("sharing: {highPriorityNamespaces: ['*']}", "c")
    assert only(asking(gpu=1, gpumem=10, priority=0), permitted).priority == 0
    assert only(asking(gpu=1, gpumem=10, priority="1")).priority == 1
    assert only(asking(gpu=1, gpumem=10)).priority is None


@pytest.mark.parametrize(
    "plain",
    [
        pod(),
        pod({"name": "c"}),
        pod(container(cpu=None)),
        {"spec": {}},
        {},
        pod({"name": "c", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}),
    ],
)
def test_a_pod_without_gpus_has_no_request(plain: dict[str, Any]) -> None:
    assert parse(plain, DEFAULT) is None


def test_containers_keep_the_order_in_which_they_start_and_those_without_gpu_are_left_out() -> None:
    sidecar = container("sidecar", gpumem=1) | {"restartPolicy": "Always"}
    request = parse(
        pod(container("idle"), container("main", gpumem=2), init=(container("first", gpumem=3), sidecar)), DEFAULT
    )
    assert request is not None
    kinds = [(c.container, c.memory_mib, c.init, c.sidecar) for c in request.containers]
    assert kinds == [("first", 3, True, False), ("sidecar", 1, True, True), ("main", 2, False, False)]


def test_the_request_names_its_dialect_and_the_default_policies() -> None:
    request = parse(asking(gpu=1), DEFAULT)
    assert request is not None
    assert (request.dialect, request.node_policy, request.gpu_policy) == ("hami", "packing", "packing")
    assert request.compute_policy is ComputePolicy.WEIGHT
