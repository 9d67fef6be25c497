"""The CustomResourceDefinitions of our kinds, derived from the wire types.

Kubernetes wants structural schemas: no references, a type everywhere, and no defaults, which the API server would
store. The JSON schema that msgspec makes is rewritten to that.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from lamina.core.component_names import GROUP, VERSION
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.inventory_status import InventoryStatus

Schema = dict[str, Any]

_DROPPED = ("title", "default", "$defs")


class PrinterColumn(NamedTuple):
    """A column of `kubectl get`. Of several values at its path, a string shows all and another type the first."""

    name: str
    type: str
    path: str
    description: str


class ObjectKind(NamedTuple):
    """A kind of objects whose spec is of the type `spec`, and whose status, where it has one, of the type `status`."""

    spec: type[msgspec.Struct]
    plural: str
    short_name: str
    namespaced: bool
    columns: tuple[PrinterColumn, ...]
    status: type[msgspec.Struct] | None = None

    @property
    def name(self) -> str:
        return self.spec.__name__


_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp", "Time since creation")
_SHARE = ".spec.containers[*].shares[*]"

INVENTORY = ObjectKind(
    spec=Inventory,
    plural="inventories",
    short_name="inv",
    namespaced=False,
    columns=(
        PrinterColumn("Driver", "string", ".spec.driver", "Version of the driver"),
        PrinterColumn("GPUs", "string", ".status.models", "Models of all GPUs with their numbers"),
        PrinterColumn("Memory", "integer", ".status.memoryMiB", "Memory of all GPUs in MiB"),
        PrinterColumn("Free", "integer", ".status.freeMemoryMiB", "Free memory of all GPUs in MiB"),
        PrinterColumn("Largest", "integer", ".status.largestFreeMiB", "Most free memory of one GPU in MiB"),
        PrinterColumn("Free Cores", "integer", ".status.freeCores", "Free compute time of all GPUs in percent of one"),
        _AGE,
    ),
    status=InventoryStatus,
)
GRANT = ObjectKind(
    spec=Grant,
    plural="grants",
    short_name="gr",
    namespaced=True,
    columns=(
        PrinterColumn("Pod", "string", ".spec.pod", "Pod that has the shares"),
        PrinterColumn("Node", "string", ".spec.node", "Node of the pod and its GPUs"),
        PrinterColumn("GPU", "string", f"{_SHARE}.gpu", "GPU of each share"),
        PrinterColumn("Memory", "string", f"{_SHARE}.memoryMiB", "Memory of each share in MiB"),
        PrinterColumn("Cores", "string", f"{_SHARE}.cores", "Compute time of each share in percent"),
        _AGE,
    ),
)


def custom_resource_definitions() -> list[Schema]:
    """The CustomResourceDefinition objects of all our kinds."""
    return [_definition(INVENTORY), _definition(GRANT)]


def _definition(kind: ObjectKind) -> dict[str, Any]:
    names = {
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "kind": kind.name,
        "shortNames": [kind.short_name],
    }
    properties = {"spec": structural_schema(kind.spec)}
    if kind.status is not None:
        properties["status"] = structural_schema(kind.status)
    schema = {"type": "object", "required": ["spec"], "properties": properties}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if kind.status is not None else {}),
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path, "description": column.description}
            for column in kind.columns
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def structural_schema(kind: type[msgspec.Struct]) -> Schema:
    """The structural schema of a type."""
    (reference,), components = msgspec.json.schema_components([kind])
    return _structural(reference, components)


def _structural(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """The schema with references resolved, `null` as nullable, and a type for every enumeration."""
    rest = {key: value for key, value in schema.items() if key not in (*_DROPPED, "$ref", "anyOf", "enum")}
    if "$ref" in schema:
        return _structural(components[schema["$ref"].removeprefix("#/$defs/")], components) | rest
    if "anyOf" in schema:
        (option,) = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return _structural(option, components) | {"nullable": True} | rest
    if "enum" in schema:
        rest.pop("description", None)  # of the enumeration; that of the field comes with the reference
        choices = [choice for choice in schema["enum"] if choice is not None]
        nullable = {"nullable": True} if None in schema["enum"] else {}
        return rest | {"type": "string", "enum": choices} | nullable
    if "description" in rest:
        rest["description"] = " ".join(rest["description"].split())
    if "properties" in rest:
        rest["properties"] = {name: _structural(inner, components) for name, inner in rest["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(rest.get(inner), dict):
            rest[inner] = _structural(rest[inner], components)
    return rest
