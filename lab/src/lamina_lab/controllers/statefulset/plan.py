"""What a StatefulSet does next: pods by ordinal, created from the lowest, removed and updated from the highest.

With OrderedReady, one pod changes at a time, and only while those before it are available. With Parallel, pods are
created and removed all at once; an update still replaces only as many as may be unavailable.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lamina.ports.kube import STATEFUL_SETS, Object
from lamina_lab.controllers.framework.pod_template import REVISION_LABEL, pod_from
from lamina_lab.controllers.framework.replicas import is_available
from lamina_lab.controllers.statefulset.revisions import Revisions, template_of
from lamina_lab.kubernetes import objects

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulPlan(Struct):
    """Pods to create (complete objects) and to delete."""

    create: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


class NumberedPods(Struct, frozen=True):
    """The pods of a set by ordinal. `wanted` are the ordinals that should exist, `condemned` the others, descending."""

    wanted: range
    pods: Mapping[int, Object]

    @property
    def condemned(self) -> list[Object]:
        return [self.pods[ordinal] for ordinal in sorted(self.pods, reverse=True) if ordinal not in self.wanted]


def ordinal_of(stateful_set: Mapping[str, Any], pod: Mapping[str, Any]) -> int | None:
    """The number in the pod's name; None if no pod of this set has such a name."""
    found = re.fullmatch(r"(.*)-(\d+)", objects.name(pod))
    return int(found[2]) if found and found[1] == objects.name(stateful_set) else None


def numbered(stateful_set: Mapping[str, Any], pods: Iterable[Object]) -> NumberedPods:
    spec = objects.spec(stateful_set)
    first = int((spec.get("ordinals") or {}).get("start") or 0)
    by_name = ((ordinal_of(stateful_set, pod), pod) for pod in pods)
    by_ordinal = {ordinal: pod for ordinal, pod in by_name if ordinal is not None}
    return NumberedPods(range(first, first + int(spec.get("replicas", 1))), by_ordinal)


def plan(stateful_set: Mapping[str, Any], pods: Sequence[Object], revisions: Revisions, now: float) -> StatefulPlan:
    """The next step for a set that owns these pods."""
    result = StatefulPlan()
    if objects.is_deleting(stateful_set):
        return result
    group = numbered(stateful_set, pods)
    ordered = objects.spec(stateful_set).get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    if _complete(stateful_set, group, revisions, result, now, ordered=ordered) and _shrink(
        stateful_set, group, result, now, ordered=ordered
    ):
        _update(stateful_set, group, revisions, result, now)
    return result


def _complete(
    stateful_set: Mapping[str, Any],
    group: NumberedPods,
    revisions: Revisions,
    result: StatefulPlan,
    now: float,
    *,
    ordered: bool,
) -> bool:
    """Create what is missing and delete what has ended. Returns whether the next part of the plan may follow."""
    for ordinal in group.wanted:
        pod = group.pods.get(ordinal)
        if pod is None:
            result.create.append(_pod_for(stateful_set, ordinal, revisions))
        elif objects.is_finished(pod) and not objects.is_deleting(pod):
            result.delete.append(pod)
        elif _serves(stateful_set, pod, now):
            continue
        if ordered:
            return False
    return not any(objects.is_finished(group.pods[ordinal]) for ordinal in group.wanted if ordinal in group.pods)


def _shrink(
    stateful_set: Mapping[str, Any], group: NumberedPods, result: StatefulPlan, now: float, *, ordered: bool
) -> bool:
    """Delete pods beyond the wanted ones. With an order, one that is not available waits for failing ones below it."""
    condemned = group.condemned
    unhealthy = [pod for pod in condemned if objects.is_deleting(pod) or not objects.is_ready(pod)]
    for pod in condemned:
        goes = not ordered or _serves(stateful_set, pod, now) or pod in unhealthy[-1:]
        if goes and not objects.is_deleting(pod):
            result.delete.append(pod)
        if ordered:
            return False
    return True


def _update(
    stateful_set: Mapping[str, Any], group: NumberedPods, revisions: Revisions, result: StatefulPlan, now: float
) -> None:
    """Delete pods of another revision from the highest ordinal down to the partition, as many as may be unavailable."""
    strategy = objects.spec(stateful_set).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    rolling = strategy.get("rollingUpdate") or {}
    left = _max_unavailable(rolling.get("maxUnavailable", 1), len(group.wanted))
    for ordinal in reversed(group.wanted[int(rolling.get("partition") or 0) :]):
        if left <= 0:
            return
        pod = group.pods.get(ordinal)
        if pod is None or objects.is_deleting(pod):
            left -= 1
        elif objects.labels(pod).get(REVISION_LABEL) != objects.name(revisions.update):
            result.delete.append(pod)
            left -= 1
        elif not _serves(stateful_set, pod, now):
            left -= 1


def _max_unavailable(amount: int | str, replicas: int) -> int:
    """Percentages round down, to one pod at least."""
    if isinstance(amount, int):
        return max(1, amount)
    return max(1, math.floor(int(amount.rstrip("%")) * replicas / 100))


def _serves(stateful_set: Mapping[str, Any], pod: Object, now: float) -> bool:
    min_ready_s = float(objects.spec(stateful_set).get("minReadySeconds") or 0)
    return not objects.is_deleting(pod) and is_available(pod, min_ready_s, now)


def _pod_for(stateful_set: Mapping[str, Any], ordinal: int, revisions: Revisions) -> Object:
    """The pod of one ordinal. Below the partition of a rolling update it has the template of before."""
    spec = objects.spec(stateful_set)
    strategy = spec.get("updateStrategy") or {}
    rolls = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    first = int((spec.get("ordinals") or {}).get("start") or 0)
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    revision = revisions.current if rolls and ordinal < first + partition else revisions.update
    name = f"{objects.name(stateful_set)}-{ordinal}"
    labels = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: objects.name(revision)}
    pod = pod_from(template_of(revision), stateful_set, STATEFUL_SETS.api_version, STATEFUL_SETS.kind, labels)
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = pod["spec"]["hostname"] = name
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    return pod
