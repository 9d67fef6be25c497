"""The OpenAPI that kubectl needs.

Writes accept `fieldValidation`, so that kubectl leaves validation to the server. Custom resources have schemas, for
`kubectl explain`.
"""

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource, Catalog
from lamina_lab.kubernetes.errors import no_such_path

_INFO = {"title": "Lamina lab", "version": "v1.34.0+lamina-lab"}

# A protobuf of openapi.v2.Document with only `swagger` and `info`: kubectl requests version 2 in this form.
V2_PROTOBUF = b"\x0a\x032.0\x12\x13\x0a\x0aLamina lab\x12\x05v1.34"
V2_JSON: Object = {"swagger": "2.0", "info": _INFO, "paths": {}}


def index(catalog: Catalog) -> Object:
    """GET /openapi/v3"""
    paths = {_prefix(resource): {"serverRelativeURL": f"/openapi/v3/{_prefix(resource)}"} for resource in catalog}
    return {"paths": paths}


def document(catalog: Catalog, path: str) -> Object:
    """GET /openapi/v3/api/v1 and similar"""
    found = [resource for resource in catalog if _prefix(resource) == path]
    if not found:
        raise no_such_path()
    paths = {f"/{path}/{_place(resource)}/{{name}}": {"patch": _patch(resource)} for resource in found}
    schemas = {f"{path.replace('/', '.')}.{resource.kind}": _schema(resource) for resource in found if resource.schema}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def _prefix(resource: ApiResource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _place(resource: ApiResource) -> str:
    return f"namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else resource.plural


def _schema(resource: ApiResource) -> Object:
    """What the definition says, with the fields that all objects have."""
    common = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    properties = common | (resource.schema.get("properties") or {})
    return {**resource.schema, "properties": properties, "x-kubernetes-group-version-kind": [_kind(resource)]}


def _kind(resource: ApiResource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _patch(resource: ApiResource) -> Object:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    return {
        "operationId": f"patch{resource.kind}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(resource),
    }
