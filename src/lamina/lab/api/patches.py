"""The kinds of PATCH: each becomes a function from the object as it is to the object as it shall be."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
import yaml

from lamina.lab.api import strategic
from lamina.lab.api.resources import Resource
from lamina.lab.api.status import ApiError, Obj, bad_request, unsupported_media

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class _YamlLoader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a timestamp stays the string that it is."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides PyYAML's own class attribute
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def decode(media: str, body: bytes) -> Any:
    """The body of a request as plain data; JSON is YAML too. Raises 400 for what cannot be read."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "yaml" not in media:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
    try:
        return yaml.load(body, Loader=_YamlLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding YAML: {error}") from error


def patcher(resource: Resource, media: str, body: bytes) -> Callable[[Obj], Obj]:
    """What a patch does. Raises 400 or 415 for one that cannot be read or is of a kind not accepted here."""
    accepted = (JSON, MERGE) if resource.custom else (JSON, MERGE, STRATEGIC)
    if media not in accepted:
        raise unsupported_media([*accepted, APPLY])
    patch = decode(media, body)
    if media == JSON:
        return _json_patch(resource, patch)
    if not isinstance(patch, dict):
        raise bad_request(f"a patch of type {media} must be an object")
    if media == MERGE:
        return lambda obj: merge(obj, patch)
    return lambda obj: strategic.apply(obj, patch)


def merge(original: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _json_patch(resource: Resource, patch: Any) -> Callable[[Obj], Obj]:
    if not isinstance(patch, list) or not all(isinstance(each, dict) for each in patch):
        raise bad_request("a patch of type application/json-patch+json must be a list of operations")

    def change(obj: Obj) -> Obj:
        try:
            return json_patched(obj, patch)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise ApiError(422, "Invalid", message) from error

    return change


def json_patched(obj: Obj, patch: list[Obj]) -> Obj:
    """RFC 6902 on a copy. Raises jsonpatch's own errors."""
    result: Obj = jsonpatch.apply_patch(copy.deepcopy(obj), patch, in_place=True)
    return result
