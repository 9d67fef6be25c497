"""Pods as large as the API server accepts: reading one is little work, and what is too large is refused."""

import contextlib
import sys
from typing import Any

import pytest

from lamina.configuration import DEFAULT
from lamina.core.host_size import asked_by
from lamina.core.requests import MAX_GPU_CONTAINERS
from lamina.dialects import parse
from lamina.dialects.choices import MAX_ANNOTATIONS, MAX_ITEMS
from lamina.errors import BadInput
from tests.dialects.pods import Pod, asking, container, pod

MAX_CALLS = 8_000
"""Calls of functions, built-in ones included, as their number does not depend on the machine. They take about 1 ms."""


def names(count: int, prefix: str = "example.com/r") -> dict[str, Any]:
    return {f"{prefix}{number}": "1" for number in range(count)}


def containers(count: int, **asked: Any) -> tuple[dict[str, Any], ...]:
    return tuple(container(f"c{number}", **asked) for number in range(count))


LARGE: dict[str, Pod] = {
    "40,000 names of others": asking(**names(40_000)),
    "40,000 misspelled names": asking(**names(40_000, "nvidia.com/r")),
    "names in many containers": pod(*containers(200, **names(200))),
    "9,000 containers": pod(*containers(9_000, **{"x/cpu": "1"})),
    "33 containers with GPUs": pod(*containers(33, gpu=1, gpumem=100)),
    "9,000 init containers": pod(container(gpu=1), init=containers(9_000)),
    "40,000 annotations": pod(container(gpu=1), annotations={f"a{number}": "" for number in range(40_000)}),
    "a list of 100,000 types": pod(container(gpu=1), annotations={"nvidia.com/use-gputype": "T4," * 100_000}),
    "a list of 100,000 other GPUs": pod(container(gpu=1), annotations={"nvidia.com/nouse-gpuuuid": "G," * 100_000}),
}


@pytest.mark.parametrize("large", LARGE)
def test_a_pod_that_is_too_large_is_refused(large: str) -> None:
    with pytest.raises(BadInput, match=r"at most \d+"):
        parse(LARGE[large], DEFAULT)


@pytest.mark.parametrize(
    ("manifest", "larger"),
    [
        (
            pod(container(gpu=1), annotations={f"a{number}": "" for number in range(MAX_ANNOTATIONS)}),
            pod(container(gpu=1), annotations={f"a{number}": "" for number in range(MAX_ANNOTATIONS + 1)}),
        ),
        (
            pod(container(gpu=1), annotations={"nvidia.com/use-gputype": "T4," * (MAX_ITEMS - 1) + "T4"}),
            pod(container(gpu=1), annotations={"nvidia.com/use-gputype": "T4," * MAX_ITEMS + "T4"}),
        ),
        (
            pod(*containers(MAX_GPU_CONTAINERS, gpu=1, gpumem=100)),
            pod(*containers(MAX_GPU_CONTAINERS + 1, gpu=1, gpumem=100)),
        ),
    ],
    ids=["annotations", "items of a list", "containers with GPUs"],
)
def test_the_largest_is_read_and_one_more_refused(manifest: Pod, larger: Pod) -> None:
    assert parse(manifest, DEFAULT) is not None
    with pytest.raises(BadInput, match=r"at most \d+"):
        parse(larger, DEFAULT)


@pytest.mark.parametrize("large", LARGE)
def test_reading_a_large_pod_takes_few_calls(large: str) -> None:
    assert calls(LARGE[large]) < MAX_CALLS


def test_the_largest_pod_that_is_read_takes_few_calls() -> None:
    largest = pod(*containers(200, **names(5)))
    assert parse(largest, DEFAULT) is None
    assert calls(largest) < MAX_CALLS


def calls(manifest: Pod) -> int:
    """How many functions are called to read a pod, after caches were filled."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    for _ in range(2):
        counted = 0
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            with contextlib.suppress(BadInput):
                parse(manifest, DEFAULT)
            asked_by(manifest)
        finally:
            sys.setprofile(before)
    return counted
