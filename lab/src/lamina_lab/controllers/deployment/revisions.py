"""A Deployment's ReplicaSets over time: the current one, their revisions, and how a new one is created."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.controllers.deployment.rollout import Bounds, Set, bounds
from lamina_lab.controllers.framework.pod_template import HASH_LABEL, same_template, template_hash, with_labels
from lamina_lab.kubernetes import objects

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = {REVISION, REVISION_HISTORY, DESIRED, MAX, "kubectl.kubernetes.io/last-applied-configuration"}


class RevisionHistory(Struct, frozen=True):
    """A Deployment's sets: `new` has its template now, `old` are the others, oldest first."""

    new: Object | None
    old: Sequence[Object]

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new else [])]


def family(deployment: Mapping[str, Any], sets: Sequence[Object]) -> RevisionHistory:
    template = objects.spec(deployment).get("template") or {}
    ordered = sorted(
        sets,
        key=lambda replica_set: (str(objects.meta(replica_set).get("creationTimestamp")), objects.name(replica_set)),
    )
    new = next(
        (
            replica_set
            for replica_set in ordered
            if same_template(objects.spec(replica_set).get("template") or {}, template)
        ),
        None,
    )
    return RevisionHistory(new, [replica_set for replica_set in ordered if replica_set is not new])


def revision(obj: Mapping[str, Any]) -> int:
    text = objects.annotations(obj).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def next_revision(group: RevisionHistory) -> int:
    return max((revision(replica_set) for replica_set in group.old), default=0) + 1


def limits_of(deployment: Mapping[str, Any]) -> Bounds:
    """The bounds of the deployment's rollout. Recreate has none."""
    spec = objects.spec(deployment)
    replicas = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Bounds(replicas, 0, 0)
    rolling = strategy.get("rollingUpdate") or {}
    return bounds(replicas, rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"))


def as_set(replica_set: Mapping[str, Any]) -> Set:
    replicas = int(objects.spec(replica_set).get("replicas", 1))
    text = objects.annotations(replica_set).get(MAX, "")
    available = int(objects.status(replica_set).get("availableReplicas") or 0)
    return Set(objects.name(replica_set), replicas, min(available, replicas), int(text) if text.isdecimal() else None)


def scale_annotations(limits: Bounds) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAX: str(limits.max_total)}


def new_replica_set(deployment: Mapping[str, Any], group: RevisionHistory, replicas: int) -> Object:
    """The ReplicaSet for the deployment's current template."""
    spec = objects.spec(deployment)
    collisions = int(objects.status(deployment).get("collisionCount") or 0)
    digest = template_hash(spec.get("template") or {}, collisions)
    template = with_labels(spec.get("template") or {}, {HASH_LABEL: digest})
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    copied = {key: value for key, value in objects.annotations(deployment).items() if key not in _NOT_COPIED}
    made: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{objects.name(deployment)}-{digest}",
            "namespace": objects.namespace(deployment),
            "labels": dict(template["metadata"]["labels"]),
            "annotations": copied | scale_annotations(limits_of(deployment)) | {REVISION: str(next_revision(group))},
            "ownerReferences": [objects.owner_reference("apps/v1", "Deployment", deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return made


def annotations_to_set(deployment: Mapping[str, Any], group: RevisionHistory) -> dict[str, str]:
    """Annotations that the current set lacks: the deployment's own, and a revision above all older sets'."""
    assert group.new is not None, "only an existing set has annotations to update"
    have = objects.annotations(group.new)
    wanted = {key: value for key, value in objects.annotations(deployment).items() if key not in _NOT_COPIED}
    number, due = revision(group.new), next_revision(group)
    if number < due:
        wanted[REVISION] = str(due)
        if number:
            wanted[REVISION_HISTORY] = ",".join(filter(None, [have.get(REVISION_HISTORY, ""), str(number)]))
    return {key: value for key, value in wanted.items() if have.get(key) != value}
