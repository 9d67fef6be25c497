"""How many disruption budgets an eviction of pods would violate, counted as kube-scheduler counts it.

But for a budget with an empty selector: it covers all pods of its namespace, as it does for Kubernetes' evictions;
kube-scheduler passes over it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.selecting import matches


def violations(pods: Iterable[Mapping[str, Any]], budgets: Iterable[Object]) -> int:
    """How many of the pods could not be evicted within the budgets, one after the other."""
    allowed = [(budget, int((budget.get("status") or {}).get("disruptionsAllowed") or 0)) for budget in budgets]
    left = [number for _, number in allowed]
    violating = 0
    for pod in pods:
        exceeded = False
        for place, (budget, _) in enumerate(allowed):
            if _covers(budget, pod["metadata"]):
                left[place] -= 1
                exceeded |= left[place] < 0
        violating += exceeded
    return violating


def _covers(budget: Object, meta: Mapping[str, Any]) -> bool:
    if budget["metadata"].get("namespace") != meta.get("namespace"):
        return False
    if meta["name"] in ((budget.get("status") or {}).get("disruptedPods") or {}):
        return False  # its disruption is counted already
    return matches((budget.get("spec") or {}).get("selector"), meta.get("labels") or {})
