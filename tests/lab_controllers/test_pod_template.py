"""When two templates ask for the same pod."""

from typing import Any

import pytest

from lamina_lab.controllers.framework.pod_template import same_template, template_hash


def template(limits: Any, **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (template({"nvidia.com/gpumem": 10000}), template({"nvidia.com/gpumem": "10k"})),
        (template({"cpu": 0.5}), template({"cpu": "500m"})),
        (template({"memory": "1Gi"}), template({"memory": "1024Mi"})),
        (template({}), template(None)),
        (template({}, labels={"pod-template-hash": "abc"}), template({}, creationTimestamp=None)),
    ],
)
def test_templates_that_describe_the_same_pod_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert same_template(one, other)
    assert template_hash(one) == template_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (template({"nvidia.com/gpumem": 10000}), template({"nvidia.com/gpumem": 10001})),
        (template({"nvidia.com/gpumem": "nonsense"}), template({"nvidia.com/gpumem": "others"})),
        (template({}, labels={"a": "b"}), template({})),
        (template({}, labels={"limits": "10k"}), template({}, labels={"limits": "10000"})),
    ],
)
def test_what_differs_is_not(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert not same_template(one, other)
    assert template_hash(one) != template_hash(other)
