"""Which changes in the cluster may let a pod fit that fitted nowhere before."""

from typing import Any

from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.lab.scheduler.node_view import could_hold
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, Resource


def may_help(resource: Resource, before: Object | None, after: Object | None) -> bool:
    """Whether a change of a node, an inventory or a grant is worth another try of pods that wait.

    A heartbeat is not, and neither is a new grant: it only takes.
    """
    if resource == NODES:
        return after is not None and (before is None or _node(before) != _node(after))
    if resource == INVENTORIES:
        return after is not None and (before is None or objects.spec(before) != objects.spec(after))
    if resource == GRANTS:
        return before is not None and (after is None or objects.spec(before) != objects.spec(after))
    return False


def may_take(resource: Resource, after: Object | None, pod: Object) -> bool:
    """Whether that change is worth another try of this pod: a node has to have all that the pod names, also what an
    extender manages, as kube-scheduler's queueing hint has it from 1.32 on."""
    return resource != NODES or (after is not None and could_hold(after, pod))


def asks_anew(before: Object | None, after: Object) -> bool:
    """Whether a waiting pod changed in what decides where it fits; its status does not, we write that ourselves."""
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
    return objects.spec(pod), objects.labels(pod), objects.annotations(pod)
