"""What kube-scheduler itself accounts for when it names pods to evict."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from lamina.core.kube_quantity import parse_quantity
from lamina.ports.kube import Object


def priority_of(pod: Object) -> int:
    return int((pod.get("spec") or {}).get("priority") or 0)


def exchangeable(pod: Object, victim: Object) -> bool:
    """Whether kube-scheduler named the victim only for amounts, so that another pod with as much would do as well."""
    return not any(_needs_more_than_amounts(obj.get("spec") or {}) for obj in (pod, victim))


def constrained_by_pods(spec: Mapping[str, Any]) -> bool:
    """Whether other pods decide where the pod fits by more than what they request."""
    containers = spec.get("containers") or ()
    ports = any(port.get("hostPort") for container in containers for port in container.get("ports") or ())
    affinity = spec.get("affinity") or {}
    other_pods = affinity.get("podAntiAffinity") or affinity.get("podAffinity") or spec.get("topologySpreadConstraints")
    return bool(ports or other_pods)


def freed_by(pods: Iterable[Object]) -> dict[str, Fraction]:
    """What kube-scheduler counts as free when the pods are gone: one pod each, and what their containers request."""
    freed: dict[str, Fraction] = {}
    for pod in pods:
        freed["pods"] = freed.get("pods", Fraction(0)) + 1
        for container in pod["spec"].get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                freed[name] = freed.get(name, Fraction(0)) + parse_quantity(amount, where=name).value
    return freed


def _needs_more_than_amounts(spec: Mapping[str, Any]) -> bool:
    """Whether more than the requests of the ordinary containers decides where the pod fits."""
    return constrained_by_pods(spec) or bool(spec.get("initContainers") or spec.get("overhead"))
