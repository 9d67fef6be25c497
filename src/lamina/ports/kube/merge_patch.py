"""Merge patches: JSON merge (RFC 7386), and the part of strategic merging that concerns lists with a key.

Also whether an object has already all that a patch would merge into it, so that the write can be skipped.
"""

import copy
from typing import Any

_KEYS = ("name", "type", "uid", "key", "containerPort", "ip")
"""The fields by which Kubernetes matches the elements of its lists, the first one that an element has."""


def merged(target: Any, patch: Any, *, by_key: bool = False) -> Any:
    """`target` with `patch` merged in: null removes, objects merge, everything else replaces.

    With `by_key`, lists of objects merge element by element, and `$patch: delete` removes one.
    """
    if not isinstance(patch, dict):
        if by_key and isinstance(patch, list) and isinstance(target, list):
            return _merged_lists(target, patch)
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value, by_key=by_key)
    return result


def _merged_lists(target: list[Any], patch: list[Any]) -> list[Any]:
    key = next((key for key in _KEYS if patch and all(isinstance(item, dict) and key in item for item in patch)), None)
    if key is None:
        return copy.deepcopy(patch)
    result = list(target)
    for item in patch:
        places = [i for i, old in enumerate(result) if isinstance(old, dict) and old.get(key) == item[key]]
        if item.get("$patch") == "delete":
            result = [old for i, old in enumerate(result) if i not in places]
        elif places:
            result[places[0]] = merged(result[places[0]], item, by_key=True)
        else:
            result.append(copy.deepcopy(item))
    return result


def includes(present: Any, wanted: Any) -> bool:
    """Whether everything wanted is present. Fields that the API server added do not matter."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            key in present and includes(present[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same_length = isinstance(present, list) and len(present) == len(wanted)
        return same_length and all(includes(one, other) for one, other in zip(present, wanted, strict=True))
    return bool(present == wanted)
