"""What a DaemonSet does next: one pod on each eligible node, replaced step by step when the template changes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lamina.ports.kube import Object
from lamina_lab.controllers.framework.pod_template import REVISION_LABEL, pod_from, template_hash
from lamina_lab.controllers.framework.replicas import is_available
from lamina_lab.kubernetes import node_affinity, objects
from lamina_lab.kubernetes.taints import untolerated

_NODE = "node.kubernetes.io/"
# Kubernetes adds these, because daemons also run on nodes with problems.
TOLERATIONS: tuple[Object, ...] = (
    {"key": _NODE + "not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": _NODE + "unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": _NODE + "disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": _NODE + "memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": _NODE + "pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": _NODE + "unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)


class DaemonPlan(Struct):
    """Pods to create (complete objects, one per node), pods to delete, and the status to publish."""

    create: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    status: Object = field(default_factory=dict)


def plan(daemon_set: Mapping[str, Any], pods: Sequence[Object], nodes: Sequence[Object], now: float) -> DaemonPlan:
    """The next step for a daemon set that owns these pods."""
    revision = template_hash(objects.spec(daemon_set).get("template") or {})
    by_node: dict[str, list[Object]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    known = {objects.name(node): node for node in nodes}
    result = DaemonPlan()
    wanted: list[str] = []
    for name, node in sorted(known.items()):
        here = by_node.get(name, [])
        if _should_run(daemon_set, node, here=bool(here)):
            wanted.append(name)
            _ensure_one_pod(daemon_set, name, here, revision, result)
        else:
            result.delete += [pod for pod in here if objects.is_active(pod)]
    for name, here in by_node.items():
        if name not in known:
            result.delete += [pod for pod in here if not objects.is_deleting(pod)]
    if not objects.is_deleting(daemon_set):
        result.delete += _outdated(daemon_set, {name: by_node.get(name, []) for name in wanted}, revision, now)
    else:
        result.create.clear()
    result.status = _status(daemon_set, by_node, set(wanted), revision, now)
    return result


def node_of(pod: Mapping[str, Any]) -> str:
    """The node of the pod or, before it is scheduled, the node that it was created for."""
    spec = objects.spec(pod)
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            if requirement.get("key") == "metadata.name" and requirement.get("values"):
                return str(requirement["values"][0])
    return ""


def _ensure_one_pod(
    daemon_set: Mapping[str, Any], node: str, here: list[Object], revision: str, result: DaemonPlan
) -> None:
    """Exactly one pod per node: failed and surplus pods are deleted, the oldest active one stays."""
    failed = [pod for pod in here if objects.is_finished(pod) and not objects.is_deleting(pod)]
    result.delete += failed
    active = sorted((pod for pod in here if objects.is_active(pod)), key=objects.version)
    result.delete += active[1:]
    if not active and not failed and not any(map(objects.is_deleting, here)):
        result.create.append(_pod_for(daemon_set, node, revision))


def _should_run(daemon_set: Mapping[str, Any], node: Mapping[str, Any], *, here: bool) -> bool:
    """Whether the node should run the pod. A NoSchedule taint does not evict a pod that is already there."""
    spec = _template_spec(daemon_set)
    tolerations = [*(spec.get("tolerations") or ()), *TOLERATIONS]
    effects = ("NoExecute",) if here else ("NoSchedule", "NoExecute")
    if spec.get("nodeName") and spec["nodeName"] != objects.name(node):
        return False
    if not node_affinity.allows(spec, node):
        return False
    return untolerated(objects.spec(node).get("taints") or (), tolerations, effects) is None


def _pod_for(daemon_set: Mapping[str, Any], node: str, revision: str) -> Object:
    """The pod for one node. Its affinity allows the scheduler no other node."""
    template = objects.spec(daemon_set).get("template") or {}
    pod = pod_from(template, daemon_set, "apps/v1", "DaemonSet", {REVISION_LABEL: revision})
    spec = pod["spec"]
    affinity = dict(spec.get("affinity") or {})
    node_rules = dict(affinity.get("nodeAffinity") or {})
    # This controller has checked the template's own terms for this node.
    required = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    node_rules["requiredDuringSchedulingIgnoredDuringExecution"] = required
    affinity["nodeAffinity"] = node_rules
    spec["affinity"] = affinity
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *TOLERATIONS]
    return pod


def _outdated(
    daemon_set: Mapping[str, Any], wanted: Mapping[str, list[Object]], revision: str, now: float
) -> list[Object]:
    """Pods of an older template to delete now: unavailable ones, and as many others as maxUnavailable allows."""
    strategy = objects.spec(daemon_set).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    min_ready_s = _min_ready(daemon_set)
    allowed = _max_unavailable(strategy, len(wanted))
    old_serving: list[Object] = []
    old_idle: list[Object] = []
    for here in wanted.values():
        active = [pod for pod in here if objects.is_active(pod)]
        serving = bool(active) and is_available(active[0], min_ready_s, now)
        allowed -= not serving
        if active and objects.labels(active[0]).get(REVISION_LABEL) != revision:
            (old_serving if serving else old_idle).append(active[0])
    return old_idle + old_serving[: max(0, allowed)]


def _max_unavailable(strategy: Mapping[str, Any], wanted: int) -> int:
    amount = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    if isinstance(amount, int):
        return max(1, amount)
    return max(1, math.ceil(int(str(amount).rstrip("%")) * wanted / 100))


def _status(
    daemon_set: Mapping[str, Any], by_node: Mapping[str, list[Object]], wanted: set[str], revision: str, now: float
) -> Object:
    active = {node: [pod for pod in here if objects.is_active(pod)] for node, here in by_node.items()}
    there = {node: pods[0] for node, pods in active.items() if pods}
    placed = [pod for node, pod in there.items() if node in wanted]
    min_ready_s = _min_ready(daemon_set)
    available = sum(is_available(pod, min_ready_s, now) for pod in placed)
    return {
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(node not in wanted for node in there),
        "numberReady": sum(map(objects.is_ready, placed)),
        "updatedNumberScheduled": sum(objects.labels(pod).get(REVISION_LABEL) == revision for pod in placed),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "observedGeneration": objects.meta(daemon_set).get("generation", 0),
    }


def _min_ready(daemon_set: Mapping[str, Any]) -> float:
    return float(objects.spec(daemon_set).get("minReadySeconds") or 0)


def _template_spec(daemon_set: Mapping[str, Any]) -> Mapping[str, Any]:
    return (objects.spec(daemon_set).get("template") or {}).get("spec") or {}
