"""The templates that a StatefulSet had, as ControllerRevisions: which pods are of which, and which are forgotten.

A rolling update needs the old template too: pods below the partition are made from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.ports.kube import STATEFUL_SETS, Object
from lamina_lab.controllers.framework.actions import Action, Create, Delete, Patch
from lamina_lab.controllers.framework.kinds import CONTROLLER_REVISIONS
from lamina_lab.controllers.framework.pod_template import REVISION_LABEL, same_template, template_hash
from lamina_lab.kubernetes import objects

HASH_LABEL = "controller.kubernetes.io/hash"


class Revisions(Struct, frozen=True):
    """`current` is what all pods had before the update, `update` has the template of now."""

    current: Object
    update: Object


def template_of(revision: Mapping[str, Any]) -> Object:
    found = dict(((revision.get("data") or {}).get("spec") or {}).get("template") or {})
    found.pop("$patch", None)
    return found


def of(stateful_set: Mapping[str, Any], known: Sequence[Object]) -> Revisions | None:
    """The two revisions that count now; None before the one for the template is stored."""
    update = _update(stateful_set, known)
    if update is None:
        return None
    named = objects.status(stateful_set).get("currentRevision")
    return Revisions(next((one for one in known if objects.name(one) == named), update), update)


def plan(stateful_set: Mapping[str, Any], known: Sequence[Object]) -> list[Action]:
    """What makes the revision for the template the newest one; nothing once it is."""
    newest = max((int(one["revision"]) for one in known), default=0)
    update = _update(stateful_set, known)
    if update is None:
        return [Create(CONTROLLER_REVISIONS, _new(stateful_set, newest + 1))]
    if int(update["revision"]) < newest:
        return [Patch(CONTROLLER_REVISIONS, update, {"revision": newest + 1})]
    return []


def forget(
    stateful_set: Mapping[str, Any], known: Sequence[Object], pods: Sequence[Object], revisions: Revisions
) -> list[Action]:
    """Revisions beyond revisionHistoryLimit that no pod has, the oldest first."""
    live = {objects.name(revisions.current), objects.name(revisions.update)}
    live |= {objects.labels(pod).get(REVISION_LABEL, "") for pod in pods}
    past = sorted((one for one in known if objects.name(one) not in live), key=lambda one: int(one["revision"]))
    keep = int(objects.spec(stateful_set).get("revisionHistoryLimit", 10))
    return [Delete(CONTROLLER_REVISIONS, one) for one in past[: max(0, len(past) - keep)]]


def _update(stateful_set: Mapping[str, Any], known: Sequence[Object]) -> Object | None:
    template = objects.spec(stateful_set).get("template") or {}
    same = (one for one in known if same_template(template_of(one), template))
    return max(same, key=lambda one: int(one["revision"]), default=None)


def _new(stateful_set: Mapping[str, Any], number: int) -> Object:
    template = objects.spec(stateful_set).get("template") or {}
    digest = template_hash(template, int(objects.status(stateful_set).get("collisionCount") or 0))
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "metadata": {
            "name": f"{objects.name(stateful_set)}-{digest}",
            "namespace": objects.namespace(stateful_set),
            "labels": {**labels, HASH_LABEL: digest},
            "ownerReferences": [objects.owner_reference(STATEFUL_SETS.api_version, STATEFUL_SETS.kind, stateful_set)],
        },
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": number,
    }
