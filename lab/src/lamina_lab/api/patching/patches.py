"""Kinds of PATCH. Each becomes a function from the current object to the patched one."""

import copy
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
import yaml

from lamina.ports.kube import Object
from lamina_lab.api.patching import strategic_merge
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import ApiError, bad_request, unsupported_media

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class _YamlLoader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: timestamps stay strings."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides PyYAML's own class attribute
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def decode(media: str, body: bytes) -> Any:
    """The body of a request as plain data; JSON is YAML too. Raises 400 if it cannot be parsed."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "yaml" not in media:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
    try:
        return yaml.load(body, Loader=_YamlLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding YAML: {error}") from error


def patcher(resource: ApiResource, media: str, body: bytes) -> Callable[[Object], Object]:
    """The function of a patch. Raises 400 or 415 if it cannot be parsed or its kind is not supported."""
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
    return lambda obj: strategic_merge.apply(obj, patch)


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


def _json_patch(resource: ApiResource, patch: Any) -> Callable[[Object], Object]:
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise bad_request("a patch of type application/json-patch+json must be a list of operations")

    def change(obj: Object) -> Object:
        try:
            return json_patched(obj, patch)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise ApiError(422, "Invalid", message) from error

    return change


def json_patched(obj: Object, patch: list[Object]) -> Object:
    """RFC 6902 on a copy. Raises jsonpatch's errors."""
    result: Object = jsonpatch.apply_patch(copy.deepcopy(obj), patch, in_place=True)
    return result
