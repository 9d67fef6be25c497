"""The definitions of our kinds say what the wire types say, in the form that Kubernetes demands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.controller.crds import apply
from lamina.core.definitions import GRANT, INVENTORY, ObjectKind, custom_resource_definitions, structural_schema
from lamina.core.gpus import Inventory, Mode
from lamina.core.grants import ComputePolicy, Grant
from lamina.ports.kube import CUSTOM_RESOURCE_DEFINITIONS, GRANTS, INVENTORIES, Resource
from lamina.ports.kube.fake import FakeKube

GOLDEN = Path(__file__).parent / "golden"
FULL = {kind: json.loads((GOLDEN / f"{kind.__name__.lower()}.json").read_text()) for kind in (Inventory, Grant)}
"""Objects in which every field is written."""


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from fields(inner, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[*]")


def values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from values(inner, f"{path}.{name}")
    if isinstance(value, list):
        for inner in value:
            yield from values(inner, f"{path}[*]")


@pytest.mark.parametrize("kind", FULL)
def test_every_field_of_the_type_is_in_the_schema_with_its_type(kind: type[msgspec.Struct]) -> None:
    schema = dict(fields(structural_schema(kind)))
    names = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean"}
    written = dict(values(FULL[kind]))
    assert {path: schema[path]["type"] for path in written} == {path: names[type(v)] for path, v in written.items()}
    assert set(schema) == set(written), "the golden object leaves no field out"


@pytest.mark.parametrize("kind", FULL)
def test_the_schema_is_structural(kind: type[msgspec.Struct]) -> None:
    for path, schema in fields(structural_schema(kind)):
        assert "type" in schema, path
        assert not {"$ref", "anyOf", "default", "title", "additionalProperties"} & set(schema), path
        assert set(schema.get("required", ())) <= set(schema.get("properties", {})), path


@pytest.mark.parametrize("kind", FULL)
def test_every_field_is_described(kind: type[msgspec.Struct]) -> None:
    for path, schema in fields(structural_schema(kind)):
        assert schema.get("description") or path.endswith("[*]"), path


@pytest.mark.parametrize("kind", FULL)
def test_the_schema_is_the_one_that_clusters_have(kind: type[msgspec.Struct]) -> None:
    golden = json.loads((GOLDEN / f"{kind.__name__.lower()}_schema.json").read_text())
    assert without_descriptions(structural_schema(kind)) == golden


@pytest.mark.parametrize(("kind", "resource"), [(INVENTORY, INVENTORIES), (GRANT, GRANTS)])
def test_kinds_are_served_where_the_client_looks(kind: ObjectKind, resource: Resource) -> None:
    assert (kind.name, kind.plural, kind.namespaced) == (resource.kind, resource.plural, resource.namespaced)


def without_descriptions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_descriptions(value)
        for key, value in schema.items()
        if not (key == "description" and isinstance(value, str))
    }


def test_choices_and_missing_values() -> None:
    grant = dict(fields(structural_schema(Grant)))
    assert set(grant[".containers[*].shares[*].mode"]["enum"]) == set(Mode)
    assert set(grant[".containers[*].shares[*].computePolicy"]["enum"]) == set(ComputePolicy)
    assert grant[".containers[*].priority"]["nullable"] is True
    assert grant[""]["required"] == ["pod", "podUID", "node", "dialect", "containers"]


@pytest.mark.parametrize("definition", custom_resource_definitions(), ids=lambda each: each["metadata"]["name"])
def test_the_columns_show_fields_that_exist(definition: dict[str, Any]) -> None:
    (version,) = definition["spec"]["versions"]
    known = dict(fields(version["schema"]["openAPIV3Schema"]))
    shown = {column["name"]: column for column in version["additionalPrinterColumns"]}
    assert shown.pop("Age")["type"] == "date"
    for column in shown.values():
        several = "[*]" in column["jsonPath"]
        field = known[column["jsonPath"].replace("[0]", "[*]")]
        assert column["type"] == ("string" if several else field["type"])
        assert (" of each " in column["description"]) == several


async def test_definitions_are_written_once_and_repaired_when_changed() -> None:
    kube = FakeKube()
    await apply(kube)
    await apply(kube)
    writes = [verb for verb, _, _ in kube.calls if verb in ("create", "replace")]
    assert writes == ["create", "create"]
    name = "grants.lamina.dev"
    body = {"spec": {"versions": []}}
    await kube.patch(CUSTOM_RESOURCE_DEFINITIONS, name, body)
    await apply(kube)
    repaired = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    assert repaired["spec"] == custom_resource_definitions()[1]["spec"]
