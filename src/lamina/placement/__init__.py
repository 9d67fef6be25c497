"""Placement: which GPUs of which node a pod gets, and in numbers why it gets none. Pure: no I/O, no clock."""

from lamina.placement.causes import Cause
from lamina.placement.explain import Explanation, explain
from lamina.placement.fit import Placement, fit
from lamina.placement.misfit import Misfit
from lamina.placement.nodes import NodeState

__all__ = ["Cause", "Explanation", "Misfit", "NodeState", "Placement", "explain", "fit"]
