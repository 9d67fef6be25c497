"""One event of a pod costs the controller little, however large the pod is."""

import sys
from types import FrameType
from typing import Any

import pytest

from lamina.ports.kube import PODS, Object
from lamina.ports.kube.follow import ADDED
from tests.controller.binders import Bench

MAX_CALLS = 10_000
"""So many calls of functions take about 1 ms. Time itself would depend on what else the machine does."""


def pod(*containers: Object, **metadata: Any) -> Object:
    started = [{"name": container["name"], "state": {"running": {}}} for container in containers]
    return {
        "metadata": {"name": "pod", "namespace": "default", "uid": "uid", "resourceVersion": "1", **metadata},
        "spec": {"nodeName": "node-0", "containers": list(containers)},
        "status": {"phase": "Running", "containerStatuses": started},
    }


def container(number: int = 0, prefix: str = "example.com/r", count: int = 0) -> Object:
    limits = {f"{prefix}{index}": "1" for index in range(count)}
    return {"name": f"c{number}", "image": "x", "resources": {"limits": limits}}


LARGE = {
    "40,000 names": pod(container(count=40_000)),
    "40,000 misspelled names": pod(container(prefix="nvidia.com/r", count=40_000)),
    "9,000 containers": pod(*(container(number, count=1) for number in range(9_000))),
    "200 containers": pod(*(container(number, count=5) for number in range(200))),
    "20,000 owners": pod(container(), ownerReferences=[{"kind": "Job", "name": "j", "uid": "u"}] * 20_000),
    "20,000 labels": pod(container(), labels={f"a{number}": "b" for number in range(20_000)}),
}


@pytest.mark.parametrize("large", LARGE)
def test_an_event_of_a_large_pod_takes_few_calls(large: str) -> None:
    assert 0 < calls(LARGE[large]) < MAX_CALLS


def calls(obj: Object) -> int:
    """How many functions are called, those in C included."""
    bench, count = Bench(), 0
    bench.offer()

    def notice(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        bench.watches._handle(PODS, ADDED, bench.watches._trim_pod(obj))
    finally:
        sys.setprofile(before)
    return count
