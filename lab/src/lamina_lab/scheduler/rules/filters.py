"""The scheduler's own filters. Each returns why a pod cannot go to a node, in kube-scheduler's words, or None."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lamina_lab.kubernetes import node_affinity, objects
from lamina_lab.kubernetes.selectors import matches
from lamina_lab.kubernetes.taints import untolerated
from lamina_lab.scheduler.rules.node_view import NodeView
from lamina_lab.scheduler.rules.pod_requests import host_ports, requests

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
HOSTNAME = "kubernetes.io/hostname"

Filter = Callable[[Mapping[str, Any], NodeView], str | None]


def reasons(pod: Mapping[str, Any], view: NodeView, ignored: Collection[str]) -> list[str]:
    """Why the pod does not fit this node; empty if it fits. `ignored` resources are counted by the extender.

    As in kube-scheduler, only the first failing filter is reported; the one for resources names all that are missing.
    """
    for check in _FILTERS:
        reason = check(pod, view)
        if reason is not None:
            return [reason]
    return insufficient(pod, view, ignored)


def insufficient(pod: Mapping[str, Any], view: NodeView, ignored: Collection[str]) -> list[str]:
    lacking = []
    if "pods" in view.allocatable and view.allocatable["pods"] < len(view.pods) + 1:
        lacking.append("Too many pods")
    for name, value in sorted(requests(pod).items()):
        if name not in ignored and value > 0 and value > view.free(name):
            lacking.append(f"Insufficient {name}")
    return lacking


def _named_node(pod: Mapping[str, Any], view: NodeView) -> str | None:
    wanted = objects.spec(pod).get("nodeName")
    return "node(s) didn't match the requested node name" if wanted and wanted != view.name else None


def _unschedulable(pod: Mapping[str, Any], view: NodeView) -> str | None:
    if not objects.spec(view.node).get("unschedulable"):
        return None
    tolerations = objects.spec(pod).get("tolerations") or ()
    return "node(s) were unschedulable" if untolerated([UNSCHEDULABLE_TAINT], tolerations) else None


def _tainted(pod: Mapping[str, Any], view: NodeView) -> str | None:
    taints = [
        taint
        for taint in objects.spec(view.node).get("taints") or ()
        if taint.get("key") != UNSCHEDULABLE_TAINT["key"]  # covered by spec.unschedulable
    ]
    taint = untolerated(taints, objects.spec(pod).get("tolerations") or ())
    if taint is None:
        return None
    return f"node(s) had untolerated taint {{{taint.get('key')}: {taint.get('value') or ''}}}"


def _not_ready(pod: Mapping[str, Any], view: NodeView) -> str | None:
    """kube-scheduler reads readiness from taints. This also covers the time before the taint is written."""
    ready = objects.condition(view.node, "Ready")
    if ready is not None and ready.get("status") == "True":
        return None
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    return "node(s) were not ready" if untolerated([taint], objects.spec(pod).get("tolerations") or ()) else None


def _affinity(pod: Mapping[str, Any], view: NodeView) -> str | None:
    if node_affinity.allows(objects.spec(pod), view.node):
        return None
    return "node(s) didn't match Pod's node affinity/selector"


def _ports(pod: Mapping[str, Any], view: NodeView) -> str | None:
    taken = host_ports(pod) & view.ports
    return "node(s) didn't have free ports for the requested pod ports" if taken else None


def _anti_affinity(pod: Mapping[str, Any], view: NodeView) -> str | None:
    """Required pod anti-affinity per node, in both directions. The lab has no other topologies."""
    for other in view.pods:
        if _repels(pod, other):
            return "node(s) didn't match pod anti-affinity rules"
        if _repels(other, pod):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


def _repels(pod: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    anti = (objects.spec(pod).get("affinity") or {}).get("podAntiAffinity") or {}
    for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        namespaces = term.get("namespaces") or [objects.namespace(pod)]
        if term.get("topologyKey") != HOSTNAME or objects.namespace(other) not in namespaces:
            continue
        if matches(term.get("labelSelector"), dict(objects.labels(other))):
            return True
    return False


_FILTERS: tuple[Filter, ...] = (_unschedulable, _named_node, _tainted, _not_ready, _affinity, _ports, _anti_affinity)
