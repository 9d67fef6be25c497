"""How many PodDisruptionBudgets an eviction of pods would violate, counted as kube-scheduler counts it.

One difference: a budget with an empty selector covers all pods of its namespace, as it does for Kubernetes' evictions.
kube-scheduler ignores it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.selectors import matches


def violations(pods: Iterable[Mapping[str, Any]], budgets: Iterable[Object]) -> int:
    """How many of the pods could not be evicted within the budgets, one after another."""
    budgets = list(budgets)
    left = [int((budget.get("status") or {}).get("disruptionsAllowed") or 0) for budget in budgets]
    violating = 0
    for pod in pods:
        exceeded = False
        for index, budget in enumerate(budgets):
            if _covers(budget, pod["metadata"]):
                left[index] -= 1
                exceeded |= left[index] < 0
        violating += exceeded
    return violating


def _covers(budget: Object, metadata: Mapping[str, Any]) -> bool:
    if budget["metadata"].get("namespace") != metadata.get("namespace"):
        return False
    if metadata["name"] in ((budget.get("status") or {}).get("disruptedPods") or {}):
        return False  # its disruption is counted already
    return matches((budget.get("spec") or {}).get("selector"), metadata.get("labels") or {})
