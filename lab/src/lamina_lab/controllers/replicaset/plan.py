"""What a ReplicaSet does about its pods: how many to create, which to delete, and the counts it publishes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339, seconds_of
from lamina_lab.controllers.framework.replicas import is_available, ready_for_s, restarts
from lamina_lab.kubernetes import objects

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
BURST = 500  # pods created or deleted in one pass, as in Kubernetes

_KEPT_FAILURES = 10
_SLOWEST_S = 30.0
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def missing(replica_set: Mapping[str, Any], pods: Sequence[Object]) -> int:
    """How many pods to create (positive) or to delete (negative)."""
    wanted = int(objects.spec(replica_set).get("replicas", 1))
    return max(-BURST, min(BURST, wanted - sum(map(objects.is_active, pods))))


def to_delete(pods: Sequence[Object], count: int, now: float) -> list[Object]:
    """The `count` active pods to delete first.

    Pods without a node first, then by phase, readiness and deletion cost; among equals the pod on the node with more
    of them, the pod that became ready later, the one restarted more often, the younger one.
    """
    active = [pod for pod in pods if objects.is_active(pod)]
    crowd = Counter(objects.spec(pod).get("nodeName") for pod in active)

    def worth(pod: Object) -> tuple[Any, ...]:
        node = objects.spec(pod).get("nodeName")
        return (
            bool(node),
            _PHASES.get(objects.phase(pod), 1),
            objects.is_ready(pod),
            _deletion_cost(pod),
            -crowd[node],
            ready_for_s(pod, now),
            -restarts(pod),
            now - (seconds_of(objects.meta(pod).get("creationTimestamp", "")) or now),
            objects.name(pod),
        )

    return sorted(active, key=worth)[:count]


def _deletion_cost(pod: Object) -> int:
    try:
        return int(objects.annotations(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def creation_delay(pods: Sequence[Object], now: float) -> float:
    """Seconds to wait before creating another pod while this set's pods keep failing as a whole.

    A pod that a node rejects ends as Failed and is replaced. Without this delay a permanent rejection would create pods
    as fast as the machine can.
    """
    failed = [pod for pod in pods if objects.phase(pod) == "Failed"]
    if not failed:
        return 0.0
    newest = max(seconds_of(objects.meta(pod).get("creationTimestamp", "")) or 0.0 for pod in failed)
    return max(0.0, newest + min(_SLOWEST_S, 2.0 ** (len(failed) - 1)) - now)


def surplus_failures(pods: Sequence[Object]) -> list[Object]:
    """Failed pods beyond the newest ten: enough to see the reason, without filling the store."""
    failed = [pod for pod in pods if objects.phase(pod) == "Failed" and not objects.is_deleting(pod)]
    failed.sort(key=lambda pod: (str(objects.meta(pod).get("creationTimestamp")), objects.version(pod)))
    return failed[:-_KEPT_FAILURES]


def status_of(replica_set: Mapping[str, Any], pods: Sequence[Object], now: float, *, failure: str = "") -> Object:
    """The status to publish. `failure` is the error of the last attempt to create a pod."""
    spec = objects.spec(replica_set)
    active = [pod for pod in pods if objects.is_active(pod)]
    wanted = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    min_ready_s = float(spec.get("minReadySeconds") or 0)
    conditions = objects.without_condition(objects.status(replica_set).get("conditions") or (), "ReplicaFailure")
    if failure:
        conditions.append(_failure(replica_set, failure, now))
    status: Object = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(wanted.items() <= dict(objects.labels(pod)).items() for pod in active),
        "readyReplicas": sum(map(objects.is_ready, active)),
        "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in active),
        "observedGeneration": objects.meta(replica_set).get("generation", 0),
        "conditions": conditions,
    }
    return status


def _failure(replica_set: Mapping[str, Any], message: str, now: float) -> Object:
    before = objects.condition(replica_set, "ReplicaFailure")
    if before is not None and before.get("message") == message:
        return dict(before)
    return {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
