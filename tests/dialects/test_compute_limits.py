"""A limit above the request of compute: who may set it, and what is refused."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.dialects import parse
from lamina.dialects.container_limits import COMPUTE_LIMIT
from lamina.errors import BadInput
from tests.dialects.pods import container, pod


def two(written: str, **amounts: Any) -> dict[str, Any]:
    """A pod of the containers `main`, which requests these amounts, and `side`, which requests 10 percent."""
    main = container("main", **{"nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 30, **amounts})
    side = container("side", **{"nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 10})
    return pod(main, side, annotations={COMPUTE_LIMIT: written})


def limits(manifest: dict[str, Any], config: Config = DEFAULT) -> list[tuple[int, int]]:
    request = parse(manifest, config)
    assert request is not None
    return [(each.cores, each.most_cores) for each in request.containers]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", [(30, 0), (10, 0)]),
        ("60", [(30, 60), (10, 60)]),
        ("main=60,side=20", [(30, 60), (10, 20)]),
        (" side=10 ", [(30, 0), (10, 10)]),
        ("100", [(30, 100), (10, 100)]),
    ],
)
def test_the_limit_stands_next_to_the_request(written: str, expected: list[tuple[int, int]]) -> None:
    assert limits(two(written)) == expected


def test_a_number_for_all_leaves_out_who_requests_no_compute() -> None:
    assert limits(two("60", **{"nvidia.com/gpucores": 0})) == [(0, 0), (10, 60)]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("29", 'the limit of container "main" must be at least its request, 30, got 29'),
        ("main=0", "must be percent from 1 to 100"),
        ("main=101", "must be percent from 1 to 100"),
        ("main=١", "must be percent from 1 to 100"),
        ("much", "must be percent from 1 to 100"),
        ("main=40,main=50", "one number or one for each container"),
        ("40,side=50", "one number or one for each container"),
        ("=40", "one number or one for each container"),
        ("other=40", 'container "other" requests no GPU'),
        ("main=40," * 300, "at most 256 items"),
    ],
)
def test_a_limit_that_cannot_be_held_is_refused(written: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse(two(written), DEFAULT)


def test_a_named_container_needs_a_share_of_compute() -> None:
    with pytest.raises(BadInput, match='container "main" requests no share of compute'):
        parse(two("main=40", **{"nvidia.com/gpucores": 0}), DEFAULT)


@pytest.mark.parametrize("policy", ["cap", "none"])
def test_a_pod_cannot_lift_the_policy_of_the_cluster(policy: str) -> None:
    config = load(
        f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nsharing: {{computePolicy: {policy}}}", "config"
    )
    with pytest.raises(BadInput, match=f"needs the compute policy weight.*is {policy}"):
        parse(two("60"), config)
