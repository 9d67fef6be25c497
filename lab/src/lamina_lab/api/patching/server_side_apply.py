"""Server-side apply: a manager applies its fields, and the server records which manager owns which field.

An entry of `managedFields` holds a manager's fields in Kubernetes' FieldsV1 notation: `f:name` for a field,
`k:{"name":"x"}` for an element of a list that merges by key. A field that a manager no longer applies is removed,
unless another manager owns it too.
"""

import copy
import json
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.patching import strategic_merge
from lamina_lab.kubernetes.errors import ApiError

Path = tuple[str, ...]

_IDENTITY = ("apiVersion", "kind")
_OWN_META = ("name", "namespace", "resourceVersion", "uid", "managedFields", "creationTimestamp", "generation")


def applied_new(wanted: Object, manager: str, now: str) -> Object:
    """The first state of an object that does not exist yet."""
    body = copy.deepcopy(wanted)
    body.setdefault("metadata", {})["managedFields"] = [_entry(wanted, manager, now)]
    return body


def applied(current: Object, wanted: Object, manager: str, now: str, force: bool) -> Object:
    """The object with `manager`'s fields applied. Raises 409 on conflicts with other managers without `force`."""
    meta = current["metadata"]
    entries = meta.get("managedFields") or []
    mine = next((entry for entry in entries if entry.get("manager") == manager), None)
    others = [entry for entry in entries if entry is not mine]
    fields = owned(wanted)
    clashes = [(other["manager"], path) for other in others for path in _clashes(current, wanted, fields, other)]
    if clashes and not force:
        raise _conflict(clashes)
    others = [_without(entry, [path for manager, path in clashes if manager == entry["manager"]]) for entry in others]
    result: Object = copy.deepcopy(current)
    if mine is not None:
        kept: Object = {}
        for entry in (fields, *(other.get("fieldsV1") or {} for other in others)):
            kept = _union(kept, entry)
        _prune(result, mine.get("fieldsV1") or {}, kept)
    body = {key: value for key, value in wanted.items() if key not in _IDENTITY}
    if isinstance(body.get("metadata"), dict):
        body["metadata"] = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    result = _overlaid(result, body)
    entry = _entry(wanted, manager, now)
    if mine is not None and mine.get("fieldsV1") == entry["fieldsV1"]:
        entry["time"] = mine.get("time", now)
    result["metadata"]["managedFields"] = [*others, entry]
    return result


def _entry(wanted: Object, manager: str, now: str) -> Object:
    head = {"manager": manager, "operation": "Apply", "apiVersion": wanted.get("apiVersion", ""), "time": now}
    return {**head, "fieldsType": "FieldsV1", "fieldsV1": owned(wanted)}


def owned(wanted: Object) -> Object:
    """The fields of a configuration, without its identity."""
    body = {key: value for key, value in wanted.items() if key not in _IDENTITY}
    meta = {key: value for key, value in (body.pop("metadata", None) or {}).items() if key not in _OWN_META}
    return _fields({**({"metadata": meta} if meta else {}), **body})


def _fields(value: Any) -> Object:
    if not isinstance(value, dict):
        return {}
    found: Object = {}
    for name, field_value in value.items():
        key = strategic_merge.merge_key(name, field_value) if isinstance(field_value, list) else None
        if key is not None:
            found[f"f:{name}"] = {_element(key, item): {".": {}, **_fields(item)} for item in field_value}
        else:
            found[f"f:{name}"] = _fields(field_value)
    return found


def _element(key: str, item: Object) -> str:
    return "k:" + json.dumps({key: item.get(key)}, separators=(",", ":"))


def _overlaid(current: Any, wanted: Any) -> Any:
    """`wanted` over `current`: maps by name, keyed lists by element, everything else as a whole."""
    if not isinstance(current, dict) or not isinstance(wanted, dict):
        return copy.deepcopy(wanted)
    result = dict(current)
    for name, value in wanted.items():
        key = strategic_merge.merge_key(name, value) if isinstance(value, list) else None
        if key is not None and isinstance(current.get(name), list):
            result[name] = _overlaid_list(key, current[name], value)
        elif value is not None:
            result[name] = _overlaid(current.get(name), value)
    return result


def _overlaid_list(key: str, current: list[Any], wanted: list[Any]) -> list[Any]:
    names = [element.get(key) for element in wanted]
    old = {element.get(key): element for element in current if isinstance(element, dict)}
    rest = [element for element in current if isinstance(element, dict) and element.get(key) not in names]
    return [_overlaid(old.get(element.get(key)), element) for element in wanted] + rest


def _union(left: Object, right: Object) -> Object:
    return {**left, **{key: _union(left.get(key, {}), value) for key, value in right.items()}}


def _prune(value: Any, before: Object, kept: Object) -> None:
    """Remove from `value` what was in `before` and no manager owns any more."""
    for name, inner in before.items():
        if not name.startswith("f:") or not isinstance(value, dict) or name[2:] not in value:
            continue
        field, here = name[2:], kept.get(name)
        if here is None:
            del value[field]
        elif isinstance(value[field], list):
            _prune_list(value[field], inner, here)
        else:
            _prune(value[field], inner, here)


def _prune_list(elements: list[Any], before: Object, kept: Object) -> None:
    for name, inner in before.items():
        if not name.startswith("k:"):
            continue
        [(key, wanted)] = json.loads(name[2:]).items()
        for chosen in [element for element in elements if isinstance(element, dict) and element.get(key) == wanted]:
            if name not in kept:
                elements.remove(chosen)
            else:
                _prune(chosen, inner, kept[name])


def _clashes(current: Object, wanted: Object, fields: Object, other: Object) -> list[Path]:
    """Paths that both own and that `wanted` would change."""
    if other.get("operation") != "Apply":
        return []
    return _differences(current, wanted, fields, other.get("fieldsV1") or {}, ())


def _differences(current: Any, wanted: Any, mine: Object, theirs: Object, at: Path) -> list[Path]:
    found: list[Path] = []
    for name in sorted(mine.keys() & theirs.keys() - {"."}):
        now, then = _step(current, name), _step(wanted, name)
        if mine[name] and theirs[name]:
            found += _differences(now, then, mine[name], theirs[name], (*at, name))
        elif not mine[name] and not theirs[name] and now != then:
            found.append((*at, name))
    return found


def _without(entry: Object, paths: list[Path]) -> Object:
    """A manager's entry after others took over these fields."""
    result = copy.deepcopy(entry)
    for *parents, last in paths:
        fields = result["fieldsV1"]
        for name in parents:
            fields = fields[name]
        del fields[last]
    return result


def _shown(path: Path) -> str:
    return "".join(f".{name[2:]}" if name.startswith("f:") else f"[{name[2:]}]" for name in path)


def _step(value: Any, name: str) -> Any:
    if name.startswith("f:"):
        return value.get(name[2:]) if isinstance(value, dict) else None
    [(key, wanted)] = json.loads(name[2:]).items()
    elements = value if isinstance(value, list) else []
    return next((element for element in elements if isinstance(element, dict) and element.get(key) == wanted), None)


def _conflict(clashes: list[tuple[str, Path]]) -> ApiError:
    listed = "\n".join(f'conflict with "{manager}": {_shown(path)}' for manager, path in clashes)
    plural = "conflict" if len(clashes) == 1 else "conflicts"
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": _shown(path)}
        for manager, path in clashes
    ]
    message = f"Apply failed with {len(clashes)} {plural}: {listed}"
    return ApiError(409, "Conflict", message, {"causes": causes})
