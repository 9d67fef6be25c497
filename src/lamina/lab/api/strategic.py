"""Strategic merge patch: Kubernetes' way of patching lists by key, for the kinds that the API serves.

Which list merges by which key is told by field name alone; among the kinds served, no name is used in two ways except
`ports`, where the elements tell.
"""

from __future__ import annotations

from typing import Any

from lamina.lab.api.status import Obj, bad_request

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "matchConditions": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
PRIMITIVE_SETS = ("finalizers", "podCIDRs")

_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def apply(original: Obj, patch: Obj) -> Obj:
    """A patched copy. Raises 400 for directives that make no sense."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    result = dict(original)
    kept = patch.get("$retainKeys")
    if isinstance(kept, list):
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            result[field] = [each for each in result.get(field) or [] if each not in value]
        elif not key.startswith("$"):
            _set(result, key, value)
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if field != key and isinstance(result.get(field), list):
            result[field] = _ordered(field, original.get(field) or [], result[field], order)
    return result


def _set(result: Obj, key: str, value: Any) -> None:
    if value is None:
        result.pop(key, None)
        return
    old = result.get(key)
    if isinstance(value, dict):
        result[key] = apply(old if isinstance(old, dict) else {}, value)
        if value.get("$patch") == "delete":
            del result[key]
    elif isinstance(value, list):
        result[key] = _merged_list(key, old if isinstance(old, list) else [], value)
    else:
        result[key] = value


def merge_key(field: str, elements: list[Any]) -> str | None:
    """The key by which this list merges; None for a list that is replaced as a whole."""
    for key in MERGE_KEYS.get(field, ()):
        if elements and all(isinstance(each, dict) and key in each for each in elements if not _is_mark(each)):
            return key
    return None


def _is_mark(element: Any) -> bool:
    return isinstance(element, dict) and set(element) == {"$patch"}


def _merged_list(field: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if field in PRIMITIVE_SETS:
        return _ordered(field, old, old + [each for each in patch if each not in old], patch)
    if field not in MERGE_KEYS or not patch:
        return patch if field not in MERGE_KEYS else old
    key = merge_key(field, patch)
    if key is None:
        wanted = " or ".join(MERGE_KEYS[field])
        raise bad_request(f"map: {patch[0]} does not contain declared merge key: {wanted}")
    if any(isinstance(each, dict) and each.get("$patch") == "replace" for each in patch):
        whole = [{name: value for name, value in each.items() if name != "$patch"} for each in patch]
        return [each for each in whole if each]
    result = list(old)
    for each in patch:
        at = next((i for i, found in enumerate(result) if found.get(key) == each.get(key)), None)
        if each.get("$patch") == "delete":
            result = [found for found in result if found.get(key) != each.get(key)]
        elif at is None:
            result.append(apply({}, each))
        else:
            result[at] = apply(result[at], each)
    return _ordered(field, old, result, [each for each in patch if each.get("$patch") != "delete"])


def _ordered(field: str, old: list[Any], merged: list[Any], order: list[Any]) -> list[Any]:
    """Sort what the patch knows as it says; what only the server knows stays where it was between its neighbours."""
    key = merge_key(field, merged)

    def name(element: Any) -> Any:
        return element.get(key) if key and isinstance(element, dict) else element

    wanted = [name(each) for each in order]
    before = [name(each) for each in old]
    known = sorted((e for e in merged if name(e) in wanted), key=lambda each: wanted.index(name(each)))
    others = [each for each in merged if name(each) not in wanted]
    result: list[Any] = []
    for each in known:
        here = name(each)
        while others and here in before and name(others[0]) in before:
            if before.index(name(others[0])) > before.index(here):
                break
            result.append(others.pop(0))
        result.append(each)
    return result + others
