"""High priority stops the neighbors of a container, so a namespace has it only where the administrator allows it. An
annotation requests it in any dialect."""

import re
from typing import Any

import pytest

from lamina.configuration import Config, load
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.dialects.high_priority import LATENCY_CLASS
from lamina.errors import BadInput
from tests.dialects.pods import container, pod

FORM = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"


def config(*namespaces: str) -> Config:
    return load(f"{FORM}sharing: {{highPriorityNamespaces: [{', '.join(map(repr, namespaces))}]}}", "configuration")


def request(namespace: str, config: Config, priority: int = 0) -> PodRequest:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/priority": str(priority)}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    metadata = {"name": "one", **({"namespace": namespace} if namespace else {})}
    found = parse({"metadata": metadata, "spec": {"containers": containers}}, config)
    assert found is not None
    return found


@pytest.mark.parametrize("namespaces", [(), ("other",)])
def test_without_permission_high_priority_is_low(namespaces: tuple[str, ...]) -> None:
    lowered = request("team", config(*namespaces))
    assert lowered.containers[0].priority == 1
    assert lowered.warnings == (
        'container "main": priority 0 on a GPU counts as 1, because sharing.highPriorityNamespaces in Lamina\'s '
        'configuration does not name the namespace "team"',
    )


@pytest.mark.parametrize("namespaces", [("team",), ("other", "team"), ("*",)])
def test_with_permission_it_is_high(namespaces: tuple[str, ...]) -> None:
    permitted = request("team", config(*namespaces))
    assert permitted.containers[0].priority == 0
    assert permitted.warnings == ()


def test_low_priority_needs_no_permission() -> None:
    assert request("team", config(), priority=1).containers[0].priority == 1
    assert request("team", config(), priority=1).warnings == ()


def test_a_pod_without_a_namespace_is_in_the_default_one() -> None:
    assert request("", config("default")).containers[0].priority == 0
    assert request("", config("team")).containers[0].priority == 1


def priorities(written: str, main: dict[str, Any], **rest: Any) -> list[int | None]:
    manifest = pod(main, container("side", **{"nvidia.com/gpumem": 1000}), annotations={LATENCY_CLASS: written}, **rest)
    found = parse(manifest, config("default"))
    assert found is not None
    return [each.priority for each in found.containers]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", [None, None]),
        ("false", [None, None]),
        ("true", [0, 0]),
        (" True ", [0, 0]),
        ("main", [0, None]),
        ("side, main", [0, 0]),
    ],
)
def test_the_annotation_puts_containers_first(written: str, expected: list[int | None]) -> None:
    assert priorities(written, container("main", gpumem=4000)) == expected


def test_the_annotation_may_repeat_a_high_priority() -> None:
    assert priorities("main", container("main", gpumem=4000, priority=0)) == [0, None]


@pytest.mark.parametrize(
    ("main", "scheduler"),
    [
        (container("main", **{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000}), "volcano"),
        (container("main", **{"nvidia.com/gpu": "0.5"}), ""),
    ],
)
def test_every_dialect_has_the_annotation(main: dict[str, Any], scheduler: str) -> None:
    manifest = pod(main, annotations={LATENCY_CLASS: "true"}, **({"schedulerName": scheduler} if scheduler else {}))
    found = parse(manifest, config("default"))
    assert found is not None and [each.priority for each in found.containers] == [0]


def test_without_permission_the_annotation_counts_as_low() -> None:
    found = parse(pod(container(gpumem=4000), annotations={LATENCY_CLASS: "true"}), config())
    assert found is not None and found.containers[0].priority == 1
    assert found.warnings[0].startswith('container "main": priority 0 on a GPU counts as 1')


@pytest.mark.parametrize(
    ("written", "priority", "sentence"),
    [
        ("other", None, f'annotation {LATENCY_CLASS}: container "other" requests no GPU; remove it'),
        ("yes", None, f'annotation {LATENCY_CLASS}: container "yes" requests no GPU; remove it'),
        (
            "true",
            1,
            f'annotation {LATENCY_CLASS}: container "main" also requests the priority 1; remove one of the two',
        ),
        ("main," * 256, None, f"annotation {LATENCY_CLASS} may have at most 256 items"),
    ],
)
def test_what_the_annotation_cannot_say_is_refused(written: str, priority: int | None, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        priorities(written, container("main", gpumem=4000, priority=priority))
