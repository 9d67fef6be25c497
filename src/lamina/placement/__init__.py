"""Placement: which GPUs of which node a pod gets, and in numbers why it gets none. Pure: no I/O, no clock.

A library of its own: docs/how-to/use-as-a-library.md shows it at work. `packing` has a face of its own, as it needs
NumPy.
"""

from lamina.core.gpus import Gpu, Inventory
from lamina.core.ledger import Taken, taken_by
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement.explanation.misfit import Misfit
from lamina.placement.explanation.sentences import Numbers
from lamina.placement.explanation.summary import Miss, miss_of, summary
from lamina.placement.hosts.hosts import Hosts
from lamina.placement.hosts.refusals import HostRefusal
from lamina.placement.rules.refusal import Cause
from lamina.placement.search.bounds import most_pods
from lamina.placement.search.explain import Explanation, explain, explain_counted
from lamina.placement.search.fit import PodPlacement, counted, fit
from lamina.placement.search.policies import node_score
from lamina.placement.search.survey import FITS, NO_NODE, Survey, alike
from lamina.placement.state.node_names import NodeNames
from lamina.placement.state.nodes import NodeState
from lamina.placement.state.table import NodeTable

__all__ = [
    "FITS",
    "NO_NODE",
    "Cause",
    "ContainerRequest",
    "Explanation",
    "Gpu",
    "GpuSelector",
    "HostRefusal",
    "Hosts",
    "Inventory",
    "Misfit",
    "Miss",
    "NodeNames",
    "NodeState",
    "NodeTable",
    "Numbers",
    "PodPlacement",
    "PodRequest",
    "Survey",
    "Taken",
    "alike",
    "counted",
    "explain",
    "explain_counted",
    "fit",
    "miss_of",
    "most_pods",
    "node_score",
    "summary",
    "taken_by",
]
