"""Strategic merge patch: lists merge by key, for the kinds that the API serves.

The merge key of a list depends on its field name only. Among the served kinds, no name is ambiguous except `ports`,
where the elements decide.
"""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import bad_request

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


def apply(original: Object, patch: Object) -> Object:
    """A patched copy. Raises 400 for invalid directives."""
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
            result[field] = [entry for entry in result.get(field) or [] if entry not in value]
        elif not key.startswith("$"):
            _set(result, key, value)
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if field != key and isinstance(result.get(field), list):
            result[field] = _ordered(field, original.get(field) or [], result[field], order)
    return result


def _set(result: Object, key: str, value: Any) -> None:
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
        if elements and all(
            isinstance(element, dict) and key in element for element in elements if not _is_mark(element)
        ):
            return key
    return None


def _is_mark(element: Any) -> bool:
    return isinstance(element, dict) and set(element) == {"$patch"}


def _merged_list(field: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if field in PRIMITIVE_SETS:
        return _ordered(field, old, old + [element for element in patch if element not in old], patch)
    if field not in MERGE_KEYS or not patch:
        return patch if field not in MERGE_KEYS else old
    key = merge_key(field, patch)
    if key is None:
        wanted = " or ".join(MERGE_KEYS[field])
        raise bad_request(f"map: {patch[0]} does not contain declared merge key: {wanted}")
    if any(isinstance(element, dict) and element.get("$patch") == "replace" for element in patch):
        whole = [{name: value for name, value in element.items() if name != "$patch"} for element in patch]
        return [element for element in whole if element]
    result = list(old)
    for element in patch:
        at = next((i for i, found in enumerate(result) if found.get(key) == element.get(key)), None)
        if element.get("$patch") == "delete":
            result = [found for found in result if found.get(key) != element.get(key)]
        elif at is None:
            result.append(apply({}, element))
        else:
            result[at] = apply(result[at], element)
    return _ordered(field, old, result, [element for element in patch if element.get("$patch") != "delete"])


def _ordered(field: str, old: list[Any], merged: list[Any], order: list[Any]) -> list[Any]:
    """The patch's elements in its order; elements that only the server has stay between their neighbors."""
    key = merge_key(field, merged)

    def name(element: Any) -> Any:
        return element.get(key) if key and isinstance(element, dict) else element

    wanted = [name(element) for element in order]
    before = [name(element) for element in old]
    known = sorted((e for e in merged if name(e) in wanted), key=lambda element: wanted.index(name(element)))
    others = [element for element in merged if name(element) not in wanted]
    result: list[Any] = []
    for element in known:
        here = name(element)
        while others and here in before and name(others[0]) in before:
            if before.index(name(others[0])) > before.index(here):
                break
            result.append(others.pop(0))
        result.append(element)
    return result + others
