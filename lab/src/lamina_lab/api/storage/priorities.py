"""The priority and preemption policy that a PriorityClass gives to a pod."""

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import forbidden

_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def resolve(store: Store, catalog: Catalog, pod: Object) -> None:
    """Set a new pod's priority and preemption policy, in place. Raises ApiError if its class does not exist."""
    spec, name = pod["spec"], pod["spec"].get("priorityClassName")
    if name in _SYSTEM_PRIORITIES:
        spec["priority"] = _SYSTEM_PRIORITIES[name]
        return
    classes = [version.obj for version in store.list(catalog.named("priorityclasses.scheduling.k8s.io"))]
    if name:
        chosen = next(
            (priority_class for priority_class in classes if priority_class["metadata"]["name"] == name), None
        )
        if chosen is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", "", pod["metadata"].get("name", ""), why)
    else:
        chosen = max(
            (priority_class for priority_class in classes if priority_class.get("globalDefault")),
            key=lambda priority_class: priority_class["value"],
            default=None,
        )
    if chosen is not None:
        spec["priorityClassName"], spec["priority"] = chosen["metadata"]["name"], int(chosen["value"])
        spec["preemptionPolicy"] = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
