import pytest

from lamina.ports.kube import Object
from lamina_lab.api.schema import field_selectors
from lamina_lab.kubernetes import selectors
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench

LABELS = {"app": "web", "tier": "front", "n": "5"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("missing!=x", True),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("missing", False),
        ("app in (db, web)", True),
        ("app in (db),tier=front", False),
        ("app notin (db)", True),
        ("missing notin (x)", True),
        ("missing in (x)", False),
        ("n>4", True),
        ("n<5", False),
        ("app>4", False),
        ("a.b/c=", False),
    ],
)
def test_labels(text: str, holds: bool) -> None:
    assert selectors.labels(text)(LABELS) is holds


@pytest.mark.parametrize("text", ["a b", "=x", "a in x", "a in (x", "a=b=c", "a==!b"])
def test_invalid_label_selectors(text: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement"):
        selectors.labels(text)


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Resembles"}]}, False),
    ],
)
def test_selectors_in_objects(selector: Object | None, holds: bool) -> None:
    assert selectors.matches(selector, LABELS) is holds


def test_selectors_as_text_select_the_same() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "n", "operator": "In", "values": ["5"]}]}
    assert selectors.as_text(selector) == "app=web,n in (5)"
    assert selectors.labels(selectors.as_text(selector))(LABELS)


@pytest.mark.parametrize(
    ("resource", "text", "holds"),
    [
        ("pods", "spec.nodeName=n1,status.phase!=Failed", True),
        ("pods", "spec.nodeName=", False),
        ("pods", "spec.hostNetwork=false", True),
        ("events", "involvedObject.name=a,source=lamina", True),
        ("events", "involvedObject.uid=", True),
        ("nodes", "spec.unschedulable=false", True),
        ("configmaps", "metadata.name=x", True),
    ],
)
def test_fields(bench: Bench, resource: str, text: str, holds: bool) -> None:
    about = {"involvedObject": {"name": "a"}, "source": {"component": "lamina"}}
    obj = {"metadata": {"name": "x"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}, **about}
    assert field_selectors.fields(bench.resource(resource), text)(obj) is holds


@pytest.mark.parametrize(
    ("resource", "text", "wanted"),
    [
        ("configmaps", "data.x=1", "field label not supported: data.x"),
        ("pods", "spec.nodeName", "invalid field selector"),
    ],
)
def test_fields_that_are_not_served(bench: Bench, resource: str, text: str, wanted: str) -> None:
    with pytest.raises(ApiError, match=wanted):
        field_selectors.fields(bench.resource(resource), text)
