"""Label selectors, from query strings or from objects, as predicates."""

import re
from collections.abc import Callable

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import bad_request

Predicate = Callable[[Object], bool]

_SET = re.compile(r"^\s*([^\s=!,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_PAIR = re.compile(r"^\s*([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)\s*$")
_ORDER = re.compile(r"^\s*([^\s=!,()<>]+)\s*([<>])\s*(-?\d+)\s*$")
_KEY = re.compile(r"^\s*(!?)\s*([^\s=!,()]+)\s*$")


def labels(text: str) -> Predicate:
    """A predicate over label maps. Raises 400 if the selector cannot be parsed."""
    tests = [_label_test(part) for part in split_requirements(text)]
    return lambda found: all(test(found) for test in tests)


def split_requirements(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label_test(part: str) -> Predicate:
    if match := _SET.match(part):
        values = {value.strip() for value in match[3].split(",")}
        return _membership(match[1], match[2] == "in", values)
    if match := _PAIR.match(part):
        return _membership(match[1], match[2] != "!=", {match[3]})
    if match := _ORDER.match(part):
        return _comparison(match[1], match[2], int(match[3]))
    if match := _KEY.match(part):
        key, wanted = match[2], not match[1]
        return lambda found: (key in found) == wanted
    raise bad_request(f"unable to parse requirement: found '{part.strip()}', expected: identifier and operator")


def _membership(key: str, inside: bool, values: set[str]) -> Predicate:
    if inside:
        return lambda found: key in found and found[key] in values
    return lambda found: key not in found or found[key] not in values


def _comparison(key: str, sign: str, bound: int) -> Predicate:
    def test(found: Object) -> bool:
        try:
            number = int(found[key])
        except (KeyError, ValueError):
            return False
        return number > bound if sign == ">" else number < bound

    return test


def matches(selector: Object | None, found: Object | None) -> bool:
    """Match a LabelSelector object against labels. An empty selector selects everything, None selects nothing."""
    if selector is None:
        return False
    have = found or {}
    if any(have.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for expression in selector.get("matchExpressions") or []:
        key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
        holds = {
            "In": key in have and have[key] in values,
            "NotIn": key not in have or have[key] not in values,
            "Exists": key in have,
            "DoesNotExist": key not in have,
        }
        if not holds.get(operator, False):
            return False
    return True


def as_text(selector: Object | None) -> str:
    """A LabelSelector object as a query string, as in the status of a Scale."""
    parts = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for expression in (selector or {}).get("matchExpressions") or []:
        values = ",".join(expression.get("values") or [])
        forms = {"In": f"{expression['key']} in ({values})", "NotIn": f"{expression['key']} notin ({values})"}
        parts.append(
            forms.get(
                expression["operator"],
                expression["key"] if expression["operator"] == "Exists" else f"!{expression['key']}",
            )
        )
    return ",".join(parts)
