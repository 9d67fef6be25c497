"""Pods that are alike are parsed once, and no pod is taken for another one."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lamina.configuration import DEFAULT
from lamina.controller import pod_parser
from lamina.controller.compatibility import MODE, binding_metadata
from lamina.controller.pod_parser import PodParser
from lamina.dialects import pod_annotations
from lamina.dialects.container_variables import COMPUTE_VARIABLE
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ports.kube import Object
from tests.controller.compat_grants import POD, grant, partitioned
from tests.worlds.objects import admitted_pod

EXAMPLES = Path(__file__).parents[2] / "examples"
VALUES: tuple[Any, ...] = (None, "", "x", "2", 2, "Always", [], {}, ["x"], {"nvidia.com/gpu": "many"})


def found(pod: ParsedPod) -> tuple[object, ...]:
    return pod.request, pod.problem, pod.host_size, pod.ticket_holders


def example_pods() -> list[Object]:
    documents = [each for file in EXAMPLES.rglob("*.yaml") for each in yaml.safe_load_all(file.read_text()) if each]
    pods = [each for each in documents if isinstance(each, dict) and each.get("kind") == "Pod"]
    assert len(pods) > 10
    variable = admitted_pod("variable", gpumem=1000, gpucores=30)
    variable["spec"]["containers"][0]["env"] = [{"name": COMPUTE_VARIABLE, "value": "disable"}]
    by_claim = admitted_pod("by-claim", gpu=1)
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "r"}
    by_claim["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}}
    return [*pods, variable, by_claim]


def neighbors(obj: Any) -> Iterator[Any]:
    """The object with one of its values left out, or replaced."""
    if isinstance(obj, dict):
        for key, value in obj.items():
            yield {other: each for other, each in obj.items() if other != key}
            yield from ({**obj, key: each} for each in (*VALUES, *neighbors(value)))
    elif isinstance(obj, list):
        for index, value in enumerate(obj):
            yield from ([*obj[:index], each, *obj[index + 1 :]] for each in neighbors(value))
        yield [*obj, *copy.deepcopy(obj[:1])]


def outcome(parse: Any, pod: Object) -> object:
    try:
        return found(parse(pod, DEFAULT))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("pod", example_pods(), ids=lambda pod: pod["metadata"]["name"])
def test_neighbors_of_a_pod_are_parsed_as_if_alone(pod: Object) -> None:
    parser = PodParser()
    for each in (pod, *neighbors(pod), pod):
        assert outcome(parser.parse, each) == outcome(parse_pod, each), each


def test_pods_of_one_template_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(obj: Object, config: Any) -> ParsedPod:
        parsed.append(obj["metadata"]["name"])
        return parse_pod(obj, config)

    monkeypatch.setattr(pod_parser, "parse_pod", counted)
    parser, one = PodParser(), admitted_pod("one", gpumem=1000)
    bound = admitted_pod("two", gpumem=1000)
    for dialect in ("hami", "volcano"):
        bound["metadata"].setdefault("annotations", {}).update(binding_metadata(POD, grant(dialect), 0.0).annotations)
    bound["spec"] |= {"nodeName": "node-1", "volumes": [{"name": "kube-api-access-x7x7x"}]}
    assert found(parser.parse(one, DEFAULT)) == found(parser.parse(bound, DEFAULT)) and parsed == ["one"]
    assert parser.parse(bound, DEFAULT).obj is bound
    assert parser.parse(one, msgspec.structs.replace(DEFAULT)).config is not DEFAULT and parsed == ["one", "one"]


def test_large_pods_and_old_templates_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_parser, "MAX_PARTS", 3)
    parser, large = PodParser(), admitted_pod("large", gpumem=1000)
    large["metadata"]["labels"] = {"long": "x" * 10_000}
    for pod in (large, *[admitted_pod(f"p{size}", gpumem=size) for size in range(1, 9)]):
        assert found(parser.parse(pod, DEFAULT)) == found(parse_pod(pod, DEFAULT))
        assert parser.kept <= 3
    assert parser.kept == 3


@pytest.mark.parametrize("dialect", ["hami", "volcano"])
def test_all_annotations_of_bound_pods_are_named(dialect: str) -> None:
    granted, inventory = partitioned(dialect)
    written = [binding_metadata(POD, grant(dialect), 0.0), binding_metadata(POD, granted, 0.0, inventory)]
    assert {key for each in written for key in each.annotations} - {MODE} <= pod_annotations()
