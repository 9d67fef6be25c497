"""High priority stops the neighbors of a container, so a namespace has it only where the administrator allows it."""

import pytest

from lamina.configuration import Config, load
from lamina.core.requests import PodRequest
from lamina.dialects import parse

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
        'container "main": nvidia.com/priority 0 counts as 1, because sharing.highPriorityNamespaces in Lamina\'s '
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
