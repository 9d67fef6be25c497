"""What follows from a silent or unready node: its conditions, its taints, and when its pods are evicted.

A node is alive while its kubelet renews the lease of its name. The time since the last renewal is measured here, from
the moment the change was observed, so that neither clock skew nor a machine that slept makes a node look dead.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.kubernetes import objects

GRACE_S = 10.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_MARK = "NodeNotReady"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OURS = {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute"), (UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}


class Heartbeat(Struct):
    """The last observed renewal of a node's lease, and when it was observed, in monotonic seconds."""

    renewal: str
    seen: float


def silence_s(beat: Heartbeat, monotonic: float) -> float:
    return monotonic - beat.seen


def conditions_of_silent_node(node: Mapping[str, Any], now: float) -> list[Object] | None:
    """The conditions of a node that stopped posting: all Unknown. None if they already are."""
    changed = False
    result: list[Object] = []
    known = list(objects.status(node).get("conditions") or ())
    if not any(condition.get("type") == "Ready" for condition in known):
        known.append({"type": "Ready"})
    for condition in known:
        if condition.get("status") == "Unknown":
            result.append(dict(condition))
            continue
        changed = True
        said = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        result.append({**condition, **said, "status": "Unknown", "lastTransitionTime": rfc3339(now)})
    return result if changed else None


def taints_for(node: Mapping[str, Any], now: float) -> list[Object] | None:
    """The node's taints according to its Ready condition and spec.unschedulable. None if they are correct already."""
    before = list(objects.spec(node).get("taints") or ())
    ready = (objects.condition(node, "Ready") or {}).get("status")
    key = {"True": None, "False": NOT_READY}.get(str(ready), UNREACHABLE)
    wanted = {(key, "NoSchedule"), (key, "NoExecute")} if key else set()
    managed = set(_OURS) | {(UNSCHEDULABLE, "NoSchedule")}
    if objects.spec(node).get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    after = [dict(taint) for taint in before if _mark(taint) not in managed or _mark(taint) in wanted]
    for kind, effect in sorted(wanted - {_mark(taint) for taint in before}):
        taint: Object = {"key": kind, "effect": effect}
        if effect == "NoExecute":
            taint["timeAdded"] = rfc3339(now)
        after.append(taint)
    return None if after == before else after


def _mark(taint: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return taint.get("key"), taint.get("effect")


def pod_conditions(pod: Mapping[str, Any], node_ready: str, now: float) -> list[Object] | None:
    """A pod's conditions while its node's Ready is `node_ready`. None if they are correct already.

    A pod on a silent node is not ready. Once the node is back, this is undone; its kubelet reports the rest.
    """
    ready = objects.condition(pod, "Ready") or {}
    marked = ready.get("reason") == _MARK
    if node_ready == "Unknown" and objects.is_ready(pod):
        said = {"type": "Ready", "status": "False", "reason": _MARK}
    elif node_ready == "True" and marked:
        said = {"type": "Ready", "status": "True"}
    else:
        return None
    said["lastTransitionTime"] = rfc3339(now)
    return objects.with_condition(objects.status(pod).get("conditions") or (), said)
