"""A Deployment's status: the counts, and the conditions that `kubectl rollout status` and `kubectl wait` read."""

from collections.abc import Mapping
from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339, seconds_of
from lamina_lab.controllers.deployment import revisions
from lamina_lab.controllers.deployment.revisions import RevisionHistory
from lamina_lab.kubernetes import objects

CREATED = "NewReplicaSetCreated"
REFUSED = "ReplicaSetCreateError"
AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"


def status_of(
    deployment: Mapping[str, Any], group: RevisionHistory, now: float, *, created: str = "", refused: str = ""
) -> Object:
    """The status to publish at `now` (Unix seconds).

    `created` names the set that was just created; `refused` is the error message if creating one was refused.
    """
    counts = _counts(deployment, group)
    conditions = _availability(deployment, counts, now)
    conditions = _progress(deployment, group, counts, conditions, now, created, refused)
    status: Object = {**counts, "observedGeneration": objects.meta(deployment).get("generation", 0)}
    status["conditions"] = _replica_failure(group, conditions)
    if collisions := objects.status(deployment).get("collisionCount"):
        status["collisionCount"] = collisions
    return status


def deadline_in(deployment: Mapping[str, Any], status: Mapping[str, Any], now: float) -> float | None:
    """Seconds until the progress deadline must be checked; None if the rollout is done or has no deadline."""
    deadline = float(objects.spec(deployment).get("progressDeadlineSeconds", 600))
    progressing = objects.condition({"status": status}, "Progressing")
    if progressing is None or progressing.get("reason") in (AVAILABLE, TIMED_OUT):
        return None
    if objects.spec(deployment).get("paused"):
        return None
    since = seconds_of(progressing.get("lastUpdateTime", "")) or now
    return max(0.0, since + deadline - now) + 1.0  # times are written in whole seconds


def _counts(deployment: Mapping[str, Any], group: RevisionHistory) -> Object:
    def total(field: str) -> int:
        return sum(int(objects.status(replica_set).get(field) or 0) for replica_set in group.all)

    available = total("availableReplicas")
    wanted = sum(revisions.as_set(replica_set).replicas for replica_set in group.all)
    return {
        "replicas": total("replicas"),
        "updatedReplicas": int(objects.status(group.new).get("replicas") or 0) if group.new else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
    }


def _availability(deployment: Mapping[str, Any], counts: Mapping[str, int], now: float) -> list[Object]:
    enough = counts["availableReplicas"] >= revisions.limits_of(deployment).min_available
    return _set(
        objects.status(deployment).get("conditions") or [],
        _condition(
            "Available",
            enough,
            "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            f"Deployment {'has' if enough else 'does not have'} minimum availability.",
            now,
        ),
    )


def _progress(
    deployment: Mapping[str, Any],
    group: RevisionHistory,
    counts: Mapping[str, int],
    conditions: list[Object],
    now: float,
    created: str,
    refused: str,
) -> list[Object]:
    current = objects.condition(deployment, "Progressing")
    name = f'ReplicaSet "{objects.name(group.new)}"' if group.new else f'Deployment "{objects.name(deployment)}"'
    if refused:
        return _set(conditions, _condition("Progressing", False, REFUSED, refused, now))
    if created:
        said = _condition("Progressing", True, CREATED, f'Created new replica set "{created}"', now)
        return _set(conditions, said)
    if objects.spec(deployment).get("paused"):
        return _set(conditions, _condition("Progressing", None, "DeploymentPaused", "Deployment is paused", now))
    if counts["replicas"] == counts["updatedReplicas"] and current and current.get("reason") == AVAILABLE:
        return conditions
    if _is_complete(deployment, counts):
        done = _condition("Progressing", True, AVAILABLE, f"{name} has successfully progressed.", now)
        return _set(conditions, done)
    if current is None and group.new:
        message = f'Found new replica set "{objects.name(group.new)}"'
        return _set(conditions, _condition("Progressing", True, "FoundNewReplicaSet", message, now))
    if _has_moved(deployment, counts):
        moving = _condition("Progressing", True, "ReplicaSetUpdated", f"{name} is progressing.", now)
        return objects.with_condition(conditions, moving)  # lastUpdateTime changes with any progress
    if current and _is_late(deployment, current, now):
        return _set(conditions, _condition("Progressing", False, TIMED_OUT, f"{name} has timed out progressing.", now))
    return conditions


def _is_complete(deployment: Mapping[str, Any], counts: Mapping[str, int]) -> bool:
    replicas = int(objects.spec(deployment).get("replicas", 1))
    return all(counts[field] == replicas for field in ("replicas", "updatedReplicas", "availableReplicas"))


def _has_moved(deployment: Mapping[str, Any], counts: Mapping[str, int]) -> bool:
    before = {field: int(objects.status(deployment).get(field) or 0) for field in counts}
    grew = any(counts[field] > before[field] for field in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    old_before = before["replicas"] - before["updatedReplicas"]
    return grew or counts["replicas"] - counts["updatedReplicas"] < old_before


def _is_late(deployment: Mapping[str, Any], progressing: Mapping[str, Any], now: float) -> bool:
    if progressing.get("reason") in (AVAILABLE, TIMED_OUT):
        return False
    deadline = objects.spec(deployment).get("progressDeadlineSeconds", 600)
    since = seconds_of(progressing.get("lastUpdateTime", ""))
    return since is not None and now >= since + deadline


def _replica_failure(group: RevisionHistory, conditions: list[Object]) -> list[Object]:
    """The failure of a set, the new one first. The deployment shows it too, because people look there."""
    for replica_set in reversed(group.all):
        failure = objects.condition(replica_set, "ReplicaFailure")
        if failure is not None:
            shown = {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
            return _set(conditions, shown)
    return objects.without_condition(conditions, "ReplicaFailure")


def _condition(kind: str, holds: bool | None, reason: str, message: str, now: float) -> Object:
    return {
        "type": kind,
        "status": "Unknown" if holds is None else str(holds),
        "lastUpdateTime": rfc3339(now),
        "lastTransitionTime": rfc3339(now),
        "reason": reason,
        "message": message,
    }


def _set(conditions: list[Object], new: Mapping[str, Any]) -> list[Object]:
    """Nothing changes, including times, while status, reason and message stay the same."""
    for old in conditions:
        if old.get("type") == new["type"]:
            same = all(old.get(field) == new.get(field) for field in ("status", "reason", "message"))
            return [dict(condition) for condition in conditions] if same else objects.with_condition(conditions, new)
    return objects.with_condition(conditions, new)
