"""The definitions of our own kinds, Inventory and Grant, derived from the types that read and write them.

Kubernetes wants structural schemas: no references, a type everywhere, no defaults that we did not mean to store. The
JSON schema of the msgspec types is rewritten to that.
"""

import logging
from typing import Any

import msgspec

from lamina.control.comparing import includes
from lamina.model.gpus import GROUP, VERSION, Inventory
from lamina.model.grants import Grant
from lamina.ports.kube import CUSTOM_RESOURCE_DEFINITIONS, GRANTS, INVENTORIES, AlreadyExists, Kube, NotFound, Resource

log = logging.getLogger(__name__)

Schema = dict[str, Any]

_DROPPED = ("title", "default", "$defs")
_AGE = ("Age", "date", ".metadata.creationTimestamp", "Time since creation")
_SHARE = ".spec.containers[*].shares[*]"


def definitions() -> list[Schema]:
    """The CustomResourceDefinition objects of all our kinds."""
    return [
        _definition(
            INVENTORIES,
            Inventory,
            short="inv",
            columns=[
                ("Driver", "string", ".spec.driver", "Version of the driver"),
                ("Model", "string", ".spec.gpus[*].model", "Model of the first GPU"),
                ("Memory", "integer", ".spec.gpus[*].memoryMiB", "MiB of the first GPU"),
            ],
        ),
        _definition(
            GRANTS,
            Grant,
            short="gr",
            columns=[
                ("Pod", "string", ".spec.pod", "The pod that holds the shares"),
                ("Node", "string", ".spec.node", "The node of the GPUs"),
                ("GPU", "string", f"{_SHARE}.gpu", "GPU of the first share"),
                ("Memory", "integer", f"{_SHARE}.memoryMiB", "MiB of the first share"),
                ("Cores", "integer", f"{_SHARE}.cores", "Percent of compute of the first share"),
            ],
        ),
    ]


async def apply(kube: Kube) -> None:
    """Write the definitions that are missing or differ. Raises Outside where that is not allowed."""
    for wanted in definitions():
        name = wanted["metadata"]["name"]
        try:
            present = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        except NotFound:
            try:
                await kube.create(CUSTOM_RESOURCE_DEFINITIONS, wanted)
                log.info("Defined %s", name)
                continue
            except AlreadyExists:
                present = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        if not includes(present["spec"], wanted["spec"]):
            version = present["metadata"]["resourceVersion"]
            meta = wanted["metadata"] | {"resourceVersion": version}
            await kube.replace(CUSTOM_RESOURCE_DEFINITIONS, wanted | {"metadata": meta})
            log.info("Redefined %s", name)


def schema_of(kind: type[msgspec.Struct]) -> Schema:
    """The structural schema of a type."""
    (reference,), components = msgspec.json.schema_components([kind])
    return _structural(reference, components)


def _definition(
    resource: Resource, kind: type[msgspec.Struct], *, short: str, columns: list[tuple[str, str, str, str]]
) -> Schema:
    """`columns` are name, type, path and description. A path that meets several values shows the first, as kubectl
    and the server agree upon."""
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind, "shortNames": [short]}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": schema_of(kind)}}
        },
        "additionalPrinterColumns": [
            {"name": name, "type": of, "jsonPath": path, "description": text}
            for name, of, path, text in (*columns, _AGE)
        ],
    }
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": scope, "versions": [version]},
    }


def _structural(schema: Schema, components: dict[str, Schema]) -> Schema:
    """The schema with references resolved, `null` as nullable, and a type for every enumeration."""
    if "$ref" in schema:
        return _structural(components[schema["$ref"].removeprefix("#/$defs/")], components)
    if "anyOf" in schema:
        (kind,) = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return _structural(kind, components) | {"nullable": True}
    result = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "enum" in result:
        result["type"] = "string"
    if "properties" in result:
        result["properties"] = {name: _structural(field, components) for name, field in result["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(result.get(inner), dict):
            result[inner] = _structural(result[inner], components)
    return result
