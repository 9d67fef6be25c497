"""The part of Go's template language that the chart's templates use, with Helm's functions, so that `lamina install`
renders the chart without Helm.

A template becomes a list of parts, each a function of the scope. A value that does not exist and a function that is
not listed here are errors, so a template cannot leave this part unnoticed; a test compares the results with Helm's.
"""

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

_ACTION = re.compile(r"\{\{(-\s)?\s*(/\*.*?\*/|.*?)\s*(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\$?(?:\.[A-Za-z_]\w*)+|[$.()|]|[A-Za-z_]\w*|\d+)')
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class TemplateError(Exception):
    """A template uses what this module does not know."""


class Scope(NamedTuple):
    """What a part of a template sees."""

    dot: Any
    root: Any
    defined: "Mapping[str, list[Part]]"


Part = Callable[[Scope], str]
Expression = Callable[[Scope], Any]


def render(templates: Mapping[str, str], data: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the templates, by their names, for this data, such as `Values`."""
    defined: dict[str, list[Part]] = {}
    parts = {name: _Parser(text, defined).parse() for name, text in templates.items()}
    return {name: _text(each, Scope(data, data, defined)) for name, each in parts.items()}


def to_json(value: Any) -> str:
    """JSON as Go writes it: keys in order, no spaces, integral numbers without a point, and no <, > and &.

    Signs that may not be in YAML are escaped too.
    """
    text = json.dumps(_as_go(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _as_go(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_go(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_go(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _since(constraint: str, version: str) -> bool:
    """Whether the version is of this minor version or newer, such as `>=1.30-0`."""
    found = re.fullmatch(r">=(\d+)\.(\d+)-0", constraint)
    if found is None:
        raise TemplateError(f"semverCompare knows constraints such as >=1.30-0, not {constraint}")
    major, minor = version.removeprefix("v").split(".")[:2]
    return (int(major), int(minor)) >= (int(found[1]), int(found[2]))


def _first_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "append": lambda values, value: [*values, value],
    "default": lambda other, value: value or other,
    "dict": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "fromYaml": yaml.safe_load,
    "get": lambda mapping, key: mapping.get(key, ""),
    "index": operator.getitem,
    "list": lambda *values: list(values),
    "merge": lambda *mappings: {key: each[key] for each in reversed(mappings) for key in each},
    "not": lambda value: not value,
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "print": lambda *values: "".join(map(_shown, values)),
    "regexFind": _first_match,
    "replace": lambda old, new, text: text.replace(old, new),
    "semverCompare": _since,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toJson": to_json,
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False, allow_unicode=True).rstrip("\n"),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
}
"""All functions but `include`."""


def _shown(value: Any) -> str:
    """A value where it stands in a text. Others have to be turned into JSON."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TemplateError(f"{value!r} is no text and no whole number")
    return str(value)


def _text(parts: list[Part], scope: Scope) -> str:
    return "".join(part(scope) for part in parts)


class _Parser:
    """Parses one template. Its definitions go to `defined`, which all templates of a chart share."""

    def __init__(self, text: str, defined: dict[str, list[Part]]) -> None:
        self._pieces, self._defined = _pieces(text), defined

    def parse(self) -> list[Part]:
        parts, end = self._until("")
        assert end == ""
        return parts

    def _until(self, *ends: str) -> tuple[list[Part], str]:
        """The parts up to one of these words, and that word; an empty one is the end of the text."""
        parts: list[Part] = []
        for is_action, text in self._pieces:
            word, _, rest = text.partition(" ")
            if not is_action:
                parts.append(_constant(text))
            elif word in ends:
                return parts, word
            elif word == "if":
                parts.append(self._if(_expression(rest)))
            elif word == "range":
                parts.append(self._range(_expression(rest)))
            elif word == "define":
                self._defined[json.loads(rest)] = self._until("end")[0]
            else:
                parts.append(_output(_expression(text)))
        if "" not in ends:
            raise TemplateError(f"a template ends before {' or '.join(ends)}")
        return parts, ""

    def _if(self, condition: Expression) -> Part:
        then, end = self._until("else", "end")
        otherwise = self._until("end")[0] if end == "else" else []
        return lambda scope: _text(then if condition(scope) else otherwise, scope)

    def _range(self, items: Expression) -> Part:
        body = self._until("end")[0]
        return lambda scope: "".join(_text(body, scope._replace(dot=item)) for item in items(scope))


def _constant(text: str) -> Part:
    return lambda _: text


def _output(value: Expression) -> Part:
    return lambda scope: _shown(value(scope))


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Texts and actions in turn, each action without its braces, and comments left out."""
    position, trimmed = 0, False
    for action in _ACTION.finditer(text):
        before = text[position : action.start()]
        before = before.lstrip() if trimmed else before
        yield False, before.rstrip() if action[1] else before
        if not action[2].startswith("/*"):
            yield True, action[2]
        position, trimmed = action.end(), bool(action[3])
    yield False, text[position:].lstrip() if trimmed else text[position:]


def _expression(text: str) -> Expression:
    """A pipeline: each command takes the result of the one before it as its last argument."""
    tokens, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise TemplateError(f"{text!r} is no expression that is known here")
        tokens.append(token[1])
        position = token.end()
    tokens.reverse()
    return _pipeline(tokens)


def _pipeline(tokens: list[str]) -> Expression:
    """The pipeline up to the closing parenthesis, or the end. `tokens` are in reverse, and are taken from."""
    commands: list[tuple[str, list[Expression]]] = []
    head, operands = "", list[Expression]()
    while tokens and (token := tokens.pop()) != ")":
        if token == "|":
            commands.append((head, operands))
            head, operands = "", []
        elif token[0].isalpha():
            head = token
        else:
            operands.append(_pipeline(tokens) if token == "(" else _operand(token))
    commands.append((head, operands))

    def value(scope: Scope) -> Any:
        piped: list[Any] = []
        for name, each in commands:
            piped = [_called(name, [*(operand(scope) for operand in each), *piped], scope)]
        return piped[0]

    return value


def _operand(token: str) -> Expression:
    if token[0] == '"' or token.isdigit():
        literal = json.loads(token)
        return lambda _: literal
    start, *keys = token.split(".")

    def found(scope: Scope) -> Any:
        value = scope.root if start == "$" else scope.dot
        for key in filter(None, keys):
            value = value[key]
        return value

    return found


def _called(name: str, arguments: list[Any], scope: Scope) -> Any:
    """The function's result; without a name, the first argument, which may be a function such as `.Files.Get`."""
    if name == "include":
        template, dot = arguments
        return _text(scope.defined[template], scope._replace(dot=dot, root=dot))
    if name:
        if name not in FUNCTIONS:
            raise TemplateError(f"the function {name} is not known here")
        return FUNCTIONS[name](*arguments)
    first, *rest = arguments
    return first(*rest) if callable(first) else first
