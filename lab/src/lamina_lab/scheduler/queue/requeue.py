"""Which changes in the cluster may let an unschedulable pod fit."""

from collections.abc import Iterable
from typing import Any

from lamina.ports.kube import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    GRANTS,
    INVENTORIES,
    NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
    Resource,
)
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.rules.node_view import could_hold


def may_unblock_pods(resource: Resource, before: Object | None, after: Object | None) -> bool:
    """Whether a change of a node, an inventory, a grant or a claim justifies another attempt for waiting pods.

    A heartbeat does not, and neither does a new grant or the allocation of a claim, which only take resources.
    """
    if resource in (DEVICE_CLASSES, RESOURCE_SLICES):
        return after is not None
    if resource == DEVICE_TAINT_RULES:
        return before is not None
    if resource == RESOURCE_CLAIMS:
        return before is None or after is None or (_is_allocated(before) and not _is_allocated(after))
    if resource == NODES:
        return after is not None and (before is None or _node(before) != _node(after))
    if resource == INVENTORIES:
        return after is not None and (before is None or objects.spec(before) != objects.spec(after))
    if resource == GRANTS:
        return before is not None and (after is None or objects.spec(before) != objects.spec(after))
    return False


def could_hold_pod(resource: Resource, after: Object | None, pod: Object, served: Iterable[str]) -> bool:
    """Whether the change justifies another attempt for this pod: a node must have every resource that the pod
    names, including those of an extender, as in kube-scheduler's queueing hints from 1.32 on. Those `served`
    by a device class may be missing.
    """
    return resource != NODES or (after is not None and could_hold(after, pod, served))


def needs_another_attempt(before: Object | None, after: Object) -> bool:
    """Whether a waiting pod changed in a field that affects scheduling. Of its status, only the claims do."""
    return before is None or _pod(before) != _pod(after)


def _node(node: Object) -> tuple[Any, ...]:
    ready = objects.condition(node, "Ready")
    status = objects.status(node)
    return (
        objects.labels(node),
        objects.spec(node),
        status.get("allocatable"),
        status.get("capacity"),
        ready.get("status") if ready else None,
    )


def _pod(pod: Object) -> tuple[Any, ...]:
    claims = objects.status(pod).get("resourceClaimStatuses")
    return objects.spec(pod), objects.labels(pod), objects.annotations(pod), claims


def _is_allocated(claim: Object) -> bool:
    return bool(objects.status(claim).get("allocation"))
