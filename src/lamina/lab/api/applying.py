"""Server-side apply: a manager says what it wants, the server remembers who wants what.

An entry of `managedFields` holds, per manager, the set of its fields in Kubernetes' FieldsV1 notation: `f:name` for a
field, `k:{"name":"x"}` for an element of a list that merges by key. What a manager no longer mentions is taken away,
unless another manager wants it too.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from lamina.lab.api import strategic
from lamina.lab.api.status import ApiError, Obj

Path = tuple[str, ...]

_IDENTITY = ("apiVersion", "kind")
_OWN_META = ("name", "namespace", "resourceVersion", "uid", "managedFields", "creationTimestamp", "generation")


def applied_new(wanted: Obj, manager: str, now: str) -> Obj:
    """The first state of an object that nobody had made before."""
    body = copy.deepcopy(wanted)
    body.setdefault("metadata", {})["managedFields"] = [_entry(wanted, manager, now)]
    return body


def applied(current: Obj, wanted: Obj, manager: str, now: str, force: bool) -> Obj:
    """The object with everything `manager` wants. Raises 409 where another applier wants otherwise and not `force`."""
    meta = current["metadata"]
    entries = meta.get("managedFields") or []
    mine = next((each for each in entries if each.get("manager") == manager), None)
    others = [each for each in entries if each is not mine]
    fields = owned(wanted)
    clashes = [(other["manager"], path) for other in others for path in _clashes(current, wanted, fields, other)]
    if clashes and not force:
        raise _conflict(clashes)
    others = [_without(each, [path for manager, path in clashes if manager == each["manager"]]) for each in others]
    result: Obj = copy.deepcopy(current)
    if mine is not None:
        kept: Obj = {}
        for each in (fields, *(other.get("fieldsV1") or {} for other in others)):
            kept = _union(kept, each)
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


def _entry(wanted: Obj, manager: str, now: str) -> Obj:
    head = {"manager": manager, "operation": "Apply", "apiVersion": wanted.get("apiVersion", ""), "time": now}
    return {**head, "fieldsType": "FieldsV1", "fieldsV1": owned(wanted)}


def owned(wanted: Obj) -> Obj:
    """The fields that a configuration speaks about, without its identity."""
    body = {key: value for key, value in wanted.items() if key not in _IDENTITY}
    meta = {key: value for key, value in (body.pop("metadata", None) or {}).items() if key not in _OWN_META}
    return _fields({**({"metadata": meta} if meta else {}), **body})


def _fields(value: Any) -> Obj:
    if not isinstance(value, dict):
        return {}
    found: Obj = {}
    for name, each in value.items():
        key = strategic.merge_key(name, each) if isinstance(each, list) else None
        if key is not None:
            found[f"f:{name}"] = {_element(key, item): {".": {}, **_fields(item)} for item in each}
        else:
            found[f"f:{name}"] = _fields(each)
    return found


def _element(key: str, item: Obj) -> str:
    return "k:" + json.dumps({key: item.get(key)}, separators=(",", ":"))


def _overlaid(current: Any, wanted: Any) -> Any:
    """`wanted` over `current`: maps by name, keyed lists by element, everything else as a whole."""
    if not isinstance(current, dict) or not isinstance(wanted, dict):
        return copy.deepcopy(wanted)
    result = dict(current)
    for name, value in wanted.items():
        key = strategic.merge_key(name, value) if isinstance(value, list) else None
        if key is not None and isinstance(current.get(name), list):
            result[name] = _overlaid_list(key, current[name], value)
        elif value is not None:
            result[name] = _overlaid(current.get(name), value)
    return result


def _overlaid_list(key: str, current: list[Any], wanted: list[Any]) -> list[Any]:
    names = [each.get(key) for each in wanted]
    old = {each.get(key): each for each in current if isinstance(each, dict)}
    rest = [each for each in current if isinstance(each, dict) and each.get(key) not in names]
    return [_overlaid(old.get(each.get(key)), each) for each in wanted] + rest


def _union(left: Obj, right: Obj) -> Obj:
    return {**left, **{key: _union(left.get(key, {}), value) for key, value in right.items()}}


def _prune(value: Any, before: Obj, kept: Obj) -> None:
    """Take out of `value` what was in `before` and is in nobody's fields any more."""
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


def _prune_list(elements: list[Any], before: Obj, kept: Obj) -> None:
    for name, inner in before.items():
        if not name.startswith("k:"):
            continue
        [(key, wanted)] = json.loads(name[2:]).items()
        for each in [each for each in elements if isinstance(each, dict) and each.get(key) == wanted]:
            if name not in kept:
                elements.remove(each)
            else:
                _prune(each, inner, kept[name])


def _clashes(current: Obj, wanted: Obj, fields: Obj, other: Obj) -> list[Path]:
    """Paths that both want, and that `wanted` would change."""
    if other.get("operation") != "Apply":
        return []
    return _differences(current, wanted, fields, other.get("fieldsV1") or {}, ())


def _differences(current: Any, wanted: Any, mine: Obj, theirs: Obj, at: Path) -> list[Path]:
    found: list[Path] = []
    for name in sorted(mine.keys() & theirs.keys() - {"."}):
        now, then = _step(current, name), _step(wanted, name)
        if mine[name] and theirs[name]:
            found += _differences(now, then, mine[name], theirs[name], (*at, name))
        elif not mine[name] and not theirs[name] and now != then:
            found.append((*at, name))
    return found


def _without(entry: Obj, paths: list[Path]) -> Obj:
    """A manager's entry after others took these fields from it."""
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
    return next((each for each in elements if isinstance(each, dict) and each.get(key) == wanted), None)


def _conflict(clashes: list[tuple[str, Path]]) -> ApiError:
    listed = "\n".join(f'conflict with "{manager}": {_shown(path)}' for manager, path in clashes)
    plural = "conflict" if len(clashes) == 1 else "conflicts"
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": _shown(path)}
        for manager, path in clashes
    ]
    message = f"Apply failed with {len(clashes)} {plural}: {listed}"
    return ApiError(409, "Conflict", message, {"causes": causes})
