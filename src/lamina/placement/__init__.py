"""Placement: which GPUs of which node a pod gets, and in numbers why it gets none. Pure: no I/O, no clock."""

from lamina.placement.causes import Cause
from lamina.placement.explain import Explanation, explain
from lamina.placement.fit import Placement, fit
from lamina.placement.misfit import Misfit
from lamina.placement.nodes import NodeState
from lamina.placement.policies import node_score
from lamina.placement.summary import Miss, miss_of, summary
from lamina.placement.survey import FITS, NO_NODE, Survey, alike
from lamina.placement.table import NodeTable

__all__ = [
    "FITS",
    "NO_NODE",
    "Cause",
    "Explanation",
    "Misfit",
    "Miss",
    "NodeState",
    "NodeTable",
    "Placement",
    "Survey",
    "alike",
    "explain",
    "fit",
    "miss_of",
    "node_score",
    "summary",
]
