"""Why kube-scheduler itself keeps a pod from a node, and what would have to change."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamina.placement.explanation.summary import Miss
from lamina.placement.hosts.room import PODS, Lack, Room
from lamina.placement.hosts.selection import (
    UNSCHEDULABLE,
    allowed_by_affinity,
    unmatched_labels,
    untolerated_taints,
    written,
)
from lamina.placement.rules.refusal import Cause

_MIB = 1 << 20
_BYTES = ("memory", "ephemeral-storage")


class HostRefusal(NamedTuple):
    """What one rule says. Each of the `changes` would be enough for this rule."""

    miss: Miss
    changes: tuple[str, ...]


def refusals(pod: Mapping[str, Any], node: Mapping[str, Any], room: Room) -> Iterator[HostRefusal]:
    """All that keeps the pod from the node, in the order in which kube-scheduler looks at it."""
    spec, of_node, meta = pod.get("spec") or {}, node.get("spec") or {}, node["metadata"]
    tolerations, labels = spec.get("tolerations") or (), meta.get("labels") or {}
    if of_node.get("unschedulable") and untolerated_taints([UNSCHEDULABLE], tolerations):
        uncordon = f"run `kubectl uncordon {meta['name']}`"
        yield _lasting(Cause.UNSCHEDULABLE, "the node is unschedulable (kubectl cordon)", uncordon)
    taints = [taint for taint in of_node.get("taints") or () if taint.get("key") != UNSCHEDULABLE["key"]]
    for taint in untolerated_taints(taints, tolerations):
        changes = "let the pod tolerate the taint", "remove the taint from the node"
        yield _lasting(Cause.TAINTED, f"the pod does not tolerate the taint {written(taint)}", *changes)
    if unmatched := unmatched_labels(spec, labels):
        wanted = ", ".join(f"{key}={value}" for key, value in sorted(unmatched.items()))
        changes = f"remove {wanted} from the pod's nodeSelector", f"label the node {wanted}"
        yield _lasting(Cause.NOT_SELECTED, f"the node does not have the label {wanted} that the pod selects", *changes)
    if not allowed_by_affinity(spec, meta["name"], labels):
        changes = "change the pod's required node affinity", "change the labels of the node"
        yield _lasting(Cause.NOT_SELECTED, "the pod's required node affinity excludes the node", *changes)
    for lack in room.lacks(pod):
        yield _of_lack(lack)


def _lasting(cause: Cause, reason: str, *changes: str) -> HostRefusal:
    return HostRefusal(Miss(reason, cause, True, (int(cause), 0, 0.0)), changes)


def _of_lack(lack: Lack) -> HostRefusal:
    lasting = lack.needed > lack.offered
    nearness = int(Cause.HOST), 0, lack.free / lack.needed
    ended = "wait until a pod on the node has ended"
    if lack.resource == PODS:
        reason = f"the node has {lack.offered} pods, and may not have more"
        return HostRefusal(Miss(reason, Cause.HOST, lasting, nearness), (ended,))
    noun, divisor = _unit(lack.resource)
    if lack.resource == "cpu":
        needed, free, offered = (f"{each / 1000:.15g}" for each in (lack.needed, lack.free, lack.offered))
    else:
        amounts = -(-lack.needed // divisor), lack.free // divisor, lack.offered // divisor
        needed, free, offered = map(str, amounts)
    less = [f"request at most {free} {noun}"] if lack.free >= divisor else []
    if lasting:
        reason, other = f"needs {needed} {noun}; this node offers {offered}", f"add a node with more {noun}"
    else:
        reason, other = f"needs {needed} {noun}; {free} of {offered} free", ended
    return HostRefusal(Miss(reason, Cause.HOST, lasting, nearness), (*less, other))


def _unit(resource: str) -> tuple[str, int]:
    """What to call the resource, and how many of its units are one of those that are shown."""
    if resource == "cpu":
        return "CPU", 1
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"MiB of {'host memory' if resource == 'memory' else resource}", _MIB
    return resource, 1
