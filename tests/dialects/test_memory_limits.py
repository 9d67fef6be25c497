"""A limit above the request of memory: who may set it, in which dialects, and what is refused."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.dialects.container_limits import MEMORY_LIMIT
from lamina.errors import BadInput
from tests.dialects.pods import container, pod


def two(written: str, **amounts: Any) -> dict[str, Any]:
    """A pod of the containers `main`, which requests these amounts, and `side`, which requests 1000 MiB."""
    main = container("main", **(amounts or {"nvidia.com/gpumem": 4000}))
    return pod(main, container("side", **{"nvidia.com/gpumem": 1000}), annotations={MEMORY_LIMIT: written})


def read(manifest: dict[str, Any]) -> PodRequest:
    request = parse(manifest, DEFAULT)
    assert request is not None
    return request


def limits(manifest: dict[str, Any]) -> list[tuple[int | None, int]]:
    return [(each.memory_mib, each.most_memory_mib) for each in read(manifest).containers]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", [(4000, 0), (1000, 0)]),
        ("4001", [(4000, 4001), (1000, 4001)]),
        ("4000", [(4000, 0), (1000, 4000)]),
        ("main=8000,side=1000", [(4000, 8000), (1000, 0)]),
        (" side=1001 ", [(4000, 0), (1000, 1001)]),
    ],
)
def test_the_limit_stands_next_to_the_request(written: str, expected: list[tuple[int, int]]) -> None:
    assert limits(two(written)) == expected


def test_a_percentage_is_compared_on_the_gpu() -> None:
    assert limits(two("8000", **{"nvidia.com/gpumem-percentage": 50})) == [(None, 8000), (1000, 8000)]


@pytest.mark.parametrize(
    ("resources", "request_mib"),
    [
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000}, 4000),
        ({"volcano.sh/gpu-mem.128Mi": 32}, 4096),
    ],
)
def test_every_dialect_has_the_annotation(resources: dict[str, Any], request_mib: int) -> None:
    manifest = pod(container("main", **resources), annotations={MEMORY_LIMIT: "9000"}, schedulerName="volcano")
    assert limits(manifest) == [(request_mib, 9000)]


def test_a_number_for_all_leaves_out_who_has_its_gpus_alone() -> None:
    assert limits(two("9000", **{"nvidia.com/gpu": 1})) == [(None, 0), (1000, 9000)]
    with pytest.raises(BadInput, match='container "main" has its GPUs to itself; remove it'):
        read(two("main=9000", **{"nvidia.com/gpu": 1}))


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("3999", 'the limit of container "main" must be at least its request, 4000 MiB, got 3999'),
        ("main=0", "must be MiB from 1 to"),
        ("main=99999999999", "must be MiB from 1 to"),
        ("main=8Gi", "must be MiB from 1 to"),
        ("main=8000,main=9000", "one number or one for each container"),
        ("8000,side=9000", "one number or one for each container"),
        ("=8000", "one number or one for each container"),
        ("other=8000", 'container "other" requests no GPU'),
        ("main=8000," * 300, "at most 256 items"),
    ],
)
def test_a_limit_that_cannot_be_held_is_refused(written: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse(two(written), DEFAULT)


BY_CONTAINER = "nvidia.com/container.main.gpu-memory."


def kai(**more: str) -> dict[str, Any]:
    return pod(container("main"), schedulerName="kai-scheduler", annotations=more)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"request": "8Gi", "limit": "12Gi"}, (8192, 12288)),
        ({"request": "8Gi", "limit": "8Gi"}, (8192, 0)),
        ({"request": "8Gi"}, (8192, 0)),
        ({"limit": "12Gi"}, (12288, 0)),
    ],
)
def test_the_keys_of_kai(written: dict[str, str], expected: tuple[int, int]) -> None:
    assert limits(kai(**{BY_CONTAINER + key: value for key, value in written.items()})) == [expected]


def test_two_limits_have_to_agree() -> None:
    both = {BY_CONTAINER + "request": "8Gi", BY_CONTAINER + "limit": "12Gi"}
    assert limits(kai(**both, **{MEMORY_LIMIT: "12288"})) == [(8192, 12288)]
    with pytest.raises(BadInput, match='container "main" has another limit, 12288 MiB, by its dialect'):
        read(kai(**both, **{MEMORY_LIMIT: "12289"}))
