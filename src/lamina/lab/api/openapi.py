"""As much OpenAPI as kubectl asks for: that writes take `fieldValidation`, so that it leaves checking to the server."""

from __future__ import annotations

from lamina.lab.api.resources import Catalogue, Resource
from lamina.lab.api.status import Obj, no_such_path

_INFO = {"title": "Lamina lab", "version": "v1.34.0+lamina-lab"}

# A protobuf of openapi.v2.Document with nothing but `swagger` and `info`: the form in which kubectl asks for version 2.
V2_PROTOBUF = b"\x0a\x032.0\x12\x13\x0a\x0aLamina lab\x12\x05v1.34"
V2_JSON: Obj = {"swagger": "2.0", "info": _INFO, "paths": {}}


def index(catalogue: Catalogue) -> Obj:
    """GET /openapi/v3"""
    paths = {_prefix(each): {"serverRelativeURL": f"/openapi/v3/{_prefix(each)}"} for each in catalogue}
    return {"paths": paths}


def document(catalogue: Catalogue, path: str) -> Obj:
    """GET /openapi/v3/api/v1 and the like"""
    found = [each for each in catalogue if _prefix(each) == path]
    if not found:
        raise no_such_path()
    paths = {f"/{path}/{_place(each)}/{{name}}": {"patch": _patch(each)} for each in found}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": {}}}


def _prefix(resource: Resource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _place(resource: Resource) -> str:
    return f"namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else resource.plural


def _patch(resource: Resource) -> Obj:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {
        "operationId": f"patch{resource.kind}",
        "parameters": [{"name": each, "in": "query", "schema": {"type": "string"}} for each in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }
