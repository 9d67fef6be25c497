"""Match conditions of webhooks, in CEL."""

import celpy

from lamina.ports.kube import Object
from lamina_lab.kubernetes.expressions import ExpressionError as ConditionError
from lamina_lab.kubernetes.expressions import Language

__all__ = ["ConditionError", "holds"]

_LANGUAGE = Language()


def holds(expression: str, variables: Object) -> bool:
    """Whether `expression` is true for plain JSON `variables`. Raises ConditionError."""
    return _LANGUAGE.holds(expression, {name: celpy.json_to_cel(value) for name, value in variables.items()})
