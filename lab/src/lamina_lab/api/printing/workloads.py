"""Rows of deployments, replica sets, stateful sets, daemon sets, jobs and cron jobs."""

from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.api.printing.ages import age, duration
from lamina_lab.api.printing.common import Column, Layout, column, conditions, name, own_age, selector_text, wide

_WIDE = (wide("Containers"), wide("Images"), wide("Selector"))


def _count(obj: Object, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def _wide(obj: Object) -> list[Any]:
    containers = ((obj["spec"].get("template") or {}).get("spec") or {}).get("containers") or []
    names = ",".join(container.get("name", "") for container in containers)
    images = ",".join(container.get("image", "") for container in containers)
    return [names, images, selector_text(obj["spec"].get("selector"))]


def _deployment(obj: Object, now: float) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{obj['spec'].get('replicas', 1)}"
    counts = [_count(obj, "updatedReplicas"), _count(obj, "availableReplicas")]
    return [name(obj), ready, *counts, own_age(obj, now), *_wide(obj)]


def _replicaset(obj: Object, now: float) -> list[Any]:
    counts = [obj["spec"].get("replicas", 1), _count(obj, "replicas"), _count(obj, "readyReplicas")]
    return [name(obj), *counts, own_age(obj, now), *_wide(obj)]


def _statefulset(obj: Object, now: float) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{obj['spec'].get('replicas', 1)}"
    return [name(obj), ready, own_age(obj, now), *_wide(obj)[:2]]


def _revision(obj: Object, now: float) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or []
    owner = next((reference for reference in owners if reference.get("controller")), None)
    kind = _resource_name(owner) if owner else "<none>"
    return [name(obj), kind, obj.get("revision", 0), own_age(obj, now)]


def _resource_name(owner: Object) -> str:
    """The owner as kubectl names it: statefulset.apps/web."""
    group = owner["apiVersion"].partition("/")[0] if "/" in owner["apiVersion"] else ""
    return f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"


def _daemonset(obj: Object, now: float) -> list[Any]:
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [_count(obj, field) for field in (*fields, "numberAvailable")]
    selector = ((obj["spec"].get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    nodes = ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>"
    return [name(obj), *counts, nodes, own_age(obj, now), *_wide(obj)]


def _job_state(obj: Object) -> str:
    held = {kind for kind, condition in conditions(obj).items() if condition.get("status") == "True"}
    for condition, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in held:
            return shown
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition in held:
            return condition
    return "Running"


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    wanted, parallel = spec.get("completions"), int(spec.get("parallelism") or 0)
    of = str(wanted) if wanted is not None else f"1 of {parallel}" if parallel > 1 else "1"
    begin, end = seconds_of(status.get("startTime") or ""), seconds_of(status.get("completionTime") or "")
    took = "" if begin is None else duration((end if end is not None else now) - begin)
    return [name(obj), _job_state(obj), f"{_count(obj, 'succeeded')}/{of}", took, own_age(obj, now), *_wide(obj)]


def _cronjob(obj: Object, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else "<none>"
    facts = [spec.get("schedule", ""), spec.get("timeZone") or "<none>", str(bool(spec.get("suspend")))]
    job = {"spec": (spec.get("jobTemplate") or {}).get("spec") or {}}
    return [name(obj), *facts, len(status.get("active") or ()), last, own_age(obj, now), *_wide(job)]


def _integers(*names: str) -> tuple[Column, ...]:
    return tuple(column(name, "integer") for name in names)


WORKLOADS = {
    "deployments.apps": Layout(
        (column("Name"), column("Ready"), *_integers("Up-to-date", "Available"), column("Age"), *_WIDE), _deployment
    ),
    "replicasets.apps": Layout(
        (column("Name"), *_integers("Desired", "Current", "Ready"), column("Age"), *_WIDE), _replicaset
    ),
    "statefulsets.apps": Layout((column("Name"), column("Ready"), column("Age"), *_WIDE[:2]), _statefulset),
    "controllerrevisions.apps": Layout(
        (column("Name"), column("Controller"), *_integers("Revision"), column("Age")), _revision
    ),
    "daemonsets.apps": Layout(
        (
            column("Name"),
            *_integers("Desired", "Current", "Ready", "Up-to-date", "Available"),
            column("Node Selector"),
            column("Age"),
            *_WIDE,
        ),
        _daemonset,
    ),
    "cronjobs.batch": Layout(
        (
            *(column(title) for title in ("Name", "Schedule", "Timezone", "Suspend")),
            *_integers("Active"),
            *(column(title) for title in ("Last Schedule", "Age")),
            *_WIDE,
        ),
        _cronjob,
    ),
    "jobs.batch": Layout(
        (column("Name"), column("Status"), column("Completions"), column("Duration"), column("Age"), *_WIDE), _job
    ),
}
