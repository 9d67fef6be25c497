"""A count of 0 is no GPU: charts write it where a value switches GPUs off."""

from typing import Any

import pytest

from lamina.admission.review import review
from lamina.configuration import DEFAULT
from lamina.dialects import parse, ticket_holders
from lamina.errors import BadInput
from tests.dialects.pods import asking, changes_of, container, pod

COUNTS = ("nvidia.com/gpu", "volcano.sh/vgpu-number")


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("zero", [0, "0", "0k", "0.0"])
def test_a_pod_with_a_count_of_0_requests_no_gpu(count: str, zero: object) -> None:
    manifest = asking(**{count: zero})
    assert parse(manifest, DEFAULT) is None
    assert ticket_holders(manifest, DEFAULT) == frozenset()


@pytest.mark.parametrize("count", COUNTS)
def test_admission_removes_a_count_of_0_so_that_no_scheduler_asks_about_it(count: str) -> None:
    manifest = asking(**{count: 0})
    manifest["spec"]["containers"][0]["resources"]["requests"] = {count: 0}
    verdict, demand = review(manifest, DEFAULT)
    name = count.replace("/", "~1")
    assert verdict.allowed and demand is None
    assert verdict.patch == tuple(
        {"op": "remove", "path": f"/spec/containers/0/resources/{field}/{name}"} for field in ("limits", "requests")
    )


def test_only_the_containers_with_another_count_get_gpus() -> None:
    manifest = pod(container("main", gpu=1, gpumem=1000), container("side", gpu=0))
    request = parse(manifest, DEFAULT)
    assert request is not None and [each.container for each in request.containers] == ["main"]
    removed = [change.pointer for change in changes_of(manifest, DEFAULT) if change.op == "remove"]
    assert removed == ["/spec/containers/1/resources/limits/nvidia.com~1gpu"]


@pytest.mark.parametrize("other", [{"gpumem": 1000}, {"gpucores": 10}, {"priority": 1}])
def test_no_gpu_with_an_amount_of_one_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"nvidia\.com/gpu must be an integer from 1 to 1024, got 0"):
        parse(asking(gpu=0, **other), DEFAULT)


def test_two_dialects_of_which_one_counts_nothing_are_not_mixed() -> None:
    request = parse(asking(gpu=1, **{"volcano.sh/vgpu-number": 0}), DEFAULT)
    assert request is not None and request.dialect == "hami"


def test_a_pod_of_another_scheduler_keeps_its_count() -> None:
    assert changes_of(pod(container(gpu=0), schedulerName="theirs"), DEFAULT) == ()
