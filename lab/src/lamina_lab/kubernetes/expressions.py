"""CEL expressions of Kubernetes objects that are true or false: match conditions, device selectors."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import celpy
from celpy.celtypes import BoolType


class ExpressionError(Exception):
    """An expression that does not compile, cannot be evaluated, or is not a boolean."""


class Language:
    """CEL with the `functions` that one field of Kubernetes offers, by name. A method is a function of its object."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._functions = dict(functions or {})
        self._program = functools.lru_cache(maxsize=256)(self._compiled)

    def check(self, expression: str) -> None:
        """Raises ExpressionError if the expression does not compile."""
        self._program(expression)

    def holds(self, expression: str, variables: Mapping[str, Any]) -> bool:
        """Whether `expression` is true for `variables`, which are CEL values. Raises ExpressionError."""
        program = self._program(expression)
        try:
            found = program.evaluate(dict(variables))
        except celpy.CELEvalError as error:
            raise ExpressionError(f"the expression {expression!r} cannot be evaluated: {error.args[0]}") from error
        if not isinstance(found, BoolType):
            raise ExpressionError(f"the expression {expression!r} must say true or false, not {found}")
        return bool(found)

    def _compiled(self, expression: str) -> Any:
        environment = celpy.Environment()
        try:
            return environment.program(environment.compile(expression), functions=self._functions)
        except celpy.CELParseError as error:
            raise ExpressionError(f"the expression {expression!r} cannot be parsed: {error}") from error
