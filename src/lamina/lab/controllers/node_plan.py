"""What a silent or unready node means: its conditions, its taints, and when the pods on it are given up.

A node is alive while its kubelet renews the lease of its name. How long ago that was is measured here, by when the
lease was seen to change, so that neither clocks that differ nor a machine that slept makes a node look dead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.lab.scheduler.taints import tolerates
from lamina.ports.kube.moments import rfc3339, seconds_of

GRACE_S = 10.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_MARK = "NodeNotReady"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OURS = {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute"), (UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}


@dataclass(slots=True)
class Heartbeat:
    """The last renewal seen of a node's lease, and when it was seen, in monotonic seconds."""

    renewal: str
    seen: float


def silence_s(beat: Heartbeat, monotonic: float) -> float:
    return monotonic - beat.seen


def conditions_of_silent(node: Mapping[str, Any], now: float) -> list[Object] | None:
    """The conditions of a node that stopped posting: all Unknown. None where they say so already."""
    changed = False
    result: list[Object] = []
    known = list(objects.status(node).get("conditions") or ())
    if not any(each.get("type") == "Ready" for each in known):
        known.append({"type": "Ready"})
    for each in known:
        if each.get("status") == "Unknown":
            result.append(dict(each))
            continue
        changed = True
        said = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        result.append({**each, **said, "status": "Unknown", "lastTransitionTime": rfc3339(now)})
    return result if changed else None


def taints_for(node: Mapping[str, Any], now: float) -> list[Object] | None:
    """The node's taints as its Ready condition and spec.unschedulable call for; None where they are right already."""
    before = list(objects.spec(node).get("taints") or ())
    ready = (objects.condition(node, "Ready") or {}).get("status")
    key = {"True": None, "False": NOT_READY}.get(str(ready), UNREACHABLE)
    wanted = {(key, "NoSchedule"), (key, "NoExecute")} if key else set()
    managed = set(_OURS) | {(UNSCHEDULABLE, "NoSchedule")}
    if objects.spec(node).get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    after = [dict(each) for each in before if _mark(each) not in managed or _mark(each) in wanted]
    for kind, effect in sorted(wanted - {_mark(each) for each in before}):
        taint: Object = {"key": kind, "effect": effect}
        if effect == "NoExecute":
            taint["timeAdded"] = rfc3339(now)
        after.append(taint)
    return None if after == before else after


def _mark(taint: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return taint.get("key"), taint.get("effect")


def stay_s(pod: Mapping[str, Any], taints: Sequence[Mapping[str, Any]], now: float) -> float | None:
    """Seconds that a pod may stay on a node with these taints; None: for ever; 0 or less: it has to go now.

    The taint that the pod tolerates for the shortest time decides.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        matching = [each for each in objects.spec(pod).get("tolerations") or () if tolerates(each, taint)]
        if not matching:
            return 0.0
        limits = [float(each["tolerationSeconds"]) for each in matching if each.get("tolerationSeconds") is not None]
        if not limits:
            continue
        added = seconds_of(taint.get("timeAdded", "")) or now
        left = added + min(limits) - now
        shortest = left if shortest is None else min(shortest, left)
    return shortest


def pod_conditions(pod: Mapping[str, Any], node_ready: str, now: float) -> list[Object] | None:
    """A pod's conditions while its node's Ready is `node_ready`; None where they are right already.

    A pod on a node that nobody hears from is not ready. Once the node is back, what was said here is taken back; its
    kubelet says the rest.
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
