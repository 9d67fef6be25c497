"""Whether an object has the fields of its kind with the right types, as Kubernetes' JSON decoder checks.

Later code can rely on the types. Null fields count as missing, as in Kubernetes.
"""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.protobuf.messages import Field, by_name, messages
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import bad_request

# Python types for a type in the table, and the type's name in Go.
_JSON: dict[str, tuple[tuple[type, ...], str]] = {
    "s": ((str,), "string"),
    "y": ((str,), "[]uint8"),
    "i": ((int,), "int64"),
    "f": ((int, float), "float64"),
    "b": ((bool,), "bool"),
    "Time": ((str,), "v1.Time"),
    "MicroTime": ((str,), "v1.MicroTime"),
    "Duration": ((str,), "v1.Duration"),
    "Quantity": ((str, int, float), "resource.Quantity"),
    "IntOrString": ((str, int), "intstr.IntOrString"),
}
_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def conform(resource: ApiResource, obj: Object) -> list[str]:
    """Remove unknown and null fields from `obj`, in place. Return the unknown ones. Raises 400 for a wrong type.

    Only the metadata of a custom resource is known.
    """
    whole = resource.kind in messages() and not resource.custom
    unknown: list[str] = []
    try:
        if whole:
            _message(resource.kind, obj, "", unknown)
        else:
            _value(Field("metadata", 1, "", "ObjectMeta", ""), obj, resource.kind, "metadata", unknown)
    except _WrongType as error:
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        raise bad_request(message) from None
    return unknown


class _WrongType(Exception):
    def __init__(self, found: Any, owner: str, path: str, wanted: str) -> None:
        name = _NAMES.get(type(found), "null")
        super().__init__(f"json: cannot unmarshal {name} into Go struct field {owner}.{path} of type {wanted}")


def _message(name: str, value: Object, path: str, unknown: list[str]) -> None:
    fields = by_name(name)
    for key in list(value):
        place = f"{path}.{key}" if path else key
        if value[key] is None:
            del value[key]
        elif key in fields:
            _value(fields[key], value, name, place, unknown)
        elif path or key not in ("kind", "apiVersion"):
            unknown.append(place)
            del value[key]


def _value(field: Field, holder: Object, owner: str, path: str, unknown: list[str]) -> None:
    found = holder[field.name]
    kind = _JSON[field.type][1] if field.type in _JSON else f"v1.{field.type}"
    if field.shape == "[]":
        if not isinstance(found, list):
            raise _WrongType(found, owner, path, f"[]{kind}")
        for at, value in enumerate(found):
            if value is None and field.type in messages():
                found[at] = value = {}
            _single(field.type, value, owner, f"{path}[{at}]", unknown)
    elif field.shape == "{}":
        if not isinstance(found, dict):
            raise _WrongType(found, owner, path, f"map[string]{kind}")
        for key, value in found.items():
            _single(field.type, value, owner, f"{path}[{key}]", unknown)
    else:
        _single(field.type, found, owner, path, unknown)


def _single(kind: str, found: Any, owner: str, path: str, unknown: list[str]) -> None:
    if kind in _JSON:
        types, name = _JSON[kind]
        if not isinstance(found, types) or (isinstance(found, bool) and bool not in types):
            raise _WrongType(found, owner, path, name)
    elif kind in messages():
        if not isinstance(found, dict):
            raise _WrongType(found, owner, path, f"v1.{kind}")
        _message(kind, found, path, unknown)
