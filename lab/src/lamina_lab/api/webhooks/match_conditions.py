"""Match conditions of webhooks, in CEL."""

import functools
from typing import Any

import celpy
from celpy.celtypes import BoolType

from lamina.ports.kube import Object


class ConditionError(Exception):
    """An expression that does not compile, cannot be evaluated, or is not a boolean."""


@functools.lru_cache(maxsize=256)
def _program(expression: str) -> Any:
    environment = celpy.Environment()
    try:
        return environment.program(environment.compile(expression))
    except celpy.CELParseError as error:
        raise ConditionError(f"the expression {expression!r} cannot be parsed: {error}") from error


def holds(expression: str, variables: Object) -> bool:
    """Whether `expression` is true for plain JSON `variables`. Raises ConditionError."""
    program = _program(expression)
    try:
        found = program.evaluate({name: celpy.json_to_cel(value) for name, value in variables.items()})
    except celpy.CELEvalError as error:
        raise ConditionError(f"the expression {expression!r} cannot be evaluated: {error.args[0]}") from error
    if not isinstance(found, BoolType):
        raise ConditionError(f"the expression {expression!r} must say true or false, not {found}")
    return bool(found)
