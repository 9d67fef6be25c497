"""The counts of a StatefulSet's pods, and when its update is complete."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.controllers.framework.pod_template import REVISION_LABEL
from lamina_lab.controllers.framework.replicas import is_available
from lamina_lab.controllers.statefulset.revisions import Revisions
from lamina_lab.kubernetes import objects


def status_of(stateful_set: Mapping[str, Any], pods: Sequence[Object], revisions: Revisions, now: float) -> Object:
    """The status to publish. Once all pods have the new template and are ready, it is the current one."""
    spec = objects.spec(stateful_set)
    min_ready_s = float(spec.get("minReadySeconds") or 0)
    current, update = objects.name(revisions.current), objects.name(revisions.update)
    placed = [objects.labels(pod).get(REVISION_LABEL) for pod in pods if not objects.is_deleting(pod)]
    status: Object = {
        "replicas": len(pods),
        "readyReplicas": sum(map(objects.is_ready, pods)),
        "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in pods),
        "currentReplicas": placed.count(current),
        "updatedReplicas": placed.count(update),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": int(objects.status(stateful_set).get("collisionCount") or 0),
        "observedGeneration": objects.meta(stateful_set).get("generation", 0),
    }
    rolls = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    wanted = int(spec.get("replicas", 1))
    if rolls and all(status[count] == wanted for count in ("replicas", "readyReplicas", "updatedReplicas")):
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": update}
    return status
