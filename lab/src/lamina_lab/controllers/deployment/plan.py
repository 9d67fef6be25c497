"""What a Deployment does next with its ReplicaSets, decided from the objects alone."""

from collections.abc import Mapping, Sequence

from lamina.ports.kube import Object
from lamina_lab.controllers.deployment import revisions, rollout
from lamina_lab.controllers.deployment.revisions import DESIRED, REVISION, RevisionHistory
from lamina_lab.controllers.framework.actions import Action, Create, Delete, Event, Patch
from lamina_lab.controllers.framework.kinds import DEPLOYMENTS, REPLICA_SETS
from lamina_lab.kubernetes import objects


def plan(deployment: Object, sets: Sequence[Object], *, old_pods_remain: bool) -> list[Action]:
    """The next step. Its changes trigger another sync of the deployment, until nothing is left to do.

    `sets` are the deployment's own; `old_pods_remain` says whether a pod of an old set still runs or is ending.
    """
    if objects.is_deleting(deployment):
        return []
    group = revisions.family(deployment, sets)
    paused = bool(objects.spec(deployment).get("paused"))
    if group.new and (actions := _annotate(deployment, group)):
        return actions
    if paused or _was_scaled(deployment, group):
        return _scale(deployment, group)
    return _roll(deployment, group, old_pods_remain=old_pods_remain) or _forget(deployment, group)


def _annotate(deployment: Object, group: RevisionHistory) -> list[Action]:
    assert group.new is not None
    actions: list[Action] = []
    if missing := revisions.annotations_to_set(deployment, group):
        actions.append(Patch(REPLICA_SETS, group.new, {"metadata": {"annotations": missing}}))
    spec_ready = objects.spec(deployment).get("minReadySeconds", 0)
    if spec_ready != objects.spec(group.new).get("minReadySeconds", 0):
        actions.append(Patch(REPLICA_SETS, group.new, {"spec": {"minReadySeconds": spec_ready}}))
    number = missing.get(REVISION) or str(revisions.revision(group.new))
    if objects.annotations(deployment).get(REVISION) != number:
        actions.append(Patch(DEPLOYMENTS, deployment, {"metadata": {"annotations": {REVISION: number}}}))
    return actions[:1]  # one patch at a time: replica_set changes the object or the counts that the others depend on


def _was_scaled(deployment: Object, group: RevisionHistory) -> bool:
    replicas = str(revisions.limits_of(deployment).replicas)
    active = [replica_set for replica_set in group.all if revisions.as_set(replica_set).replicas]
    return any(objects.annotations(replica_set).get(DESIRED, replicas) != replicas for replica_set in active)


def _scale(deployment: Object, group: RevisionHistory) -> list[Action]:
    limits = revisions.limits_of(deployment)
    new = revisions.as_set(group.new) if group.new else None
    fallback = int(objects.status(deployment).get("replicas") or 0)
    counts = rollout.proportional(limits, new, [revisions.as_set(replica_set) for replica_set in group.old], fallback)
    stale = {
        name: replica_set.replicas
        for replica_set, name in ((revisions.as_set(entry), objects.name(entry)) for entry in group.all)
        if replica_set.replicas and name not in counts
    }
    return _resize(deployment, group, stale | counts)


def _roll(deployment: Object, group: RevisionHistory, *, old_pods_remain: bool) -> list[Action]:
    limits = revisions.limits_of(deployment)
    recreate = (objects.spec(deployment).get("strategy") or {}).get("type") == "Recreate"
    old = [revisions.as_set(replica_set) for replica_set in group.old]
    new = revisions.as_set(group.new) if group.new else rollout.Set("", 0, 0)
    if recreate:
        counts = rollout.recreate_step(limits.replicas, new, old, old_pods_remain=old_pods_remain)
        blocked = old_pods_remain or any(replica_set.replicas for replica_set in old)
    else:
        counts = rollout.rolling_step(limits, new, old)
        blocked = False
    if group.new is None and not blocked:
        return _introduce(deployment, group, counts.get("", 0))
    return _resize(deployment, group, {name: count for name, count in counts.items() if name})


def _introduce(deployment: Object, group: RevisionHistory, replicas: int) -> list[Action]:
    made = revisions.new_replica_set(deployment, group, replicas)
    actions: list[Action] = [Create(REPLICA_SETS, made)]
    if replicas:
        message = f"Scaled up replica set {objects.name(made)} from 0 to {replicas}"
        actions.append(Event(DEPLOYMENTS, deployment, "ScalingReplicaSet", message))
    return actions


def _resize(deployment: Object, group: RevisionHistory, counts: Mapping[str, int]) -> list[Action]:
    """Patches for sets whose count or annotations differ from `counts`, each with an event."""
    annotations = revisions.scale_annotations(revisions.limits_of(deployment))
    actions: list[Action] = []
    for replica_set in group.all:
        if objects.name(replica_set) not in counts:
            continue
        before, after = revisions.as_set(replica_set).replicas, counts[objects.name(replica_set)]
        have = objects.annotations(replica_set)
        wanted = {key: value for key, value in annotations.items() if have.get(key) != value}
        body: Object = {"metadata": {"annotations": wanted}} if wanted else {}
        if after != before:
            body["spec"] = {"replicas": after}
        if body:
            actions.append(Patch(REPLICA_SETS, replica_set, body))
        if after != before:
            way = "up" if after > before else "down"
            message = f"Scaled {way} replica set {objects.name(replica_set)} from {before} to {after}"
            actions.append(Event(DEPLOYMENTS, deployment, "ScalingReplicaSet", message))
    return actions


def _forget(deployment: Object, group: RevisionHistory) -> list[Action]:
    """Once the rollout is complete: old, empty sets beyond revisionHistoryLimit go, the oldest revision first."""
    if group.new is None or not _is_complete(deployment):
        return []
    keep = int(objects.spec(deployment).get("revisionHistoryLimit", 10))
    empty = [
        replica_set
        for replica_set in sorted(group.old, key=revisions.revision)
        if revisions.as_set(replica_set).replicas == 0
        and not objects.status(replica_set).get("replicas")
        and not objects.is_deleting(replica_set)
    ]
    return [Delete(REPLICA_SETS, replica_set) for replica_set in empty[: max(0, len(empty) - keep)]]


def _is_complete(deployment: Object) -> bool:
    status, replicas = objects.status(deployment), int(objects.spec(deployment).get("replicas", 1))
    counted = (status.get(field) or 0 for field in ("replicas", "updatedReplicas", "availableReplicas"))
    return all(count == replicas for count in counted)
