"""Selectors: every operator against every kind of value, compared with what Kubernetes documents."""

from itertools import product

import pytest

from lamina.ports.kube import NODES, PODS, Object
from lamina.ports.kube.selectors import matches, selector

LABELS: tuple[dict[str, str] | None, ...] = (None, {}, {"gpu": "on"}, {"gpu": "off"}, {"gpu": ""}, {"other": "on"})
TERMS = {
    "gpu=on": lambda has: has.get("gpu") == "on",
    "gpu==on": lambda has: has.get("gpu") == "on",
    "gpu!=on": lambda has: has.get("gpu") != "on",
    "gpu=": lambda has: has.get("gpu") == "",
    "gpu": lambda has: "gpu" in has,
    "!gpu": lambda has: "gpu" not in has,
    "other": lambda has: "other" in has,
}


def obj(labels: dict[str, str] | None = None, **rest: object) -> Object:
    return {"metadata": {"name": "p", "namespace": "team", "labels": labels}, **rest}


@pytest.mark.parametrize(("first", "second"), list(product(["", *TERMS], repeat=2)))
def test_label_terms_hold_together(first: str, second: str) -> None:
    wanted = selector(PODS, "", ",".join((first, second)), "")
    for labels in LABELS:
        holds = all(TERMS[term](labels or {}) for term in (first, second) if term)
        assert wanted(obj(labels)) == holds, labels


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ("spec.nodeName=n", True),
        ("spec.nodeName==n", True),
        ("spec.nodeName!=n", False),
        ("spec.nodeName=m", False),
        ("spec.nodeName=", False),
        ("spec.missing=", True),
        ("spec.missing!=x", True),
        ("spec.nodeName.deeper=", True),
        ("metadata.name=p,spec.nodeName=n", True),
        ("metadata.name=p,spec.nodeName=m", False),
    ],
)
def test_field_terms_read_a_path_and_a_missing_field_is_empty(fields: str, holds: bool) -> None:
    assert selector(PODS, "", "", fields)(obj(spec={"nodeName": "n"})) is holds


@pytest.mark.parametrize(
    ("namespace", "labels", "fields", "holds"),
    [
        ("", "", "", True),
        ("team", "", "", True),
        ("other", "", "", False),
        ("team", "gpu=on", "spec.nodeName=n", True),
        ("other", "gpu=on", "spec.nodeName=n", False),
        ("team", "gpu=off", "spec.nodeName=n", False),
        ("team", "gpu=on", "spec.nodeName=m", False),
    ],
)
def test_namespace_labels_and_fields_must_all_agree(namespace: str, labels: str, fields: str, holds: bool) -> None:
    assert selector(PODS, namespace, labels, fields)(obj({"gpu": "on"}, spec={"nodeName": "n"})) is holds


def test_a_namespace_says_nothing_about_a_kind_without_namespaces() -> None:
    assert selector(NODES, "team", "", "")({"metadata": {"name": "n"}})


EXPRESSIONS = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
}


@pytest.mark.parametrize("operator", EXPRESSIONS)
@pytest.mark.parametrize("values", [[], ["on"], ["on", "off"], None])
def test_label_selector_expressions(operator: str, values: list[str] | None) -> None:
    chosen = {"matchExpressions": [{"key": "gpu", "operator": operator, "values": values}]}
    for labels in LABELS:
        has = labels or {}
        assert matches(chosen, has) == EXPRESSIONS[operator](has.get("gpu"), values or ()), labels


def test_label_selector_parts_must_all_agree() -> None:
    exists = {"key": "gpu", "operator": "Exists"}
    absent = {"key": "other", "operator": "DoesNotExist"}
    both = {"matchLabels": {"gpu": "on"}, "matchExpressions": [exists, absent]}
    assert matches(both, {"gpu": "on"})
    assert not matches(both, {"gpu": "off"})
    assert not matches(both, {"gpu": "on", "other": ""})


def test_no_label_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches(None, {}) and not matches(None, {"gpu": "on"})
    assert matches({}, {}) and matches({"matchLabels": None, "matchExpressions": None}, {"gpu": "on"})


@pytest.mark.parametrize("operator", ["Gt", "", None, "in"])
def test_an_operator_that_is_not_known_selects_nothing(operator: str | None) -> None:
    chosen = {"matchExpressions": [{"key": "gpu", "operator": operator, "values": ["on"]}]}
    assert not any(matches(chosen, labels or {}) for labels in LABELS)
