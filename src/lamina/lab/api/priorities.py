"""What a pod's PriorityClass makes of it: its number, and whether it may evict others."""

from lamina.lab.api.resources import Catalogue
from lamina.lab.api.status import Obj, forbidden
from lamina.lab.api.store import Store

_OF_THE_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def resolve(store: Store, catalogue: Catalogue, pod: Obj) -> None:
    """Fill in a new pod's priority and preemption policy, in place. Raises ApiError where its class does not exist."""
    spec, name = pod["spec"], pod["spec"].get("priorityClassName")
    if name in _OF_THE_SYSTEM:
        spec["priority"] = _OF_THE_SYSTEM[name]
        return
    classes = [version.obj for version in store.list(catalogue.named("priorityclasses.scheduling.k8s.io"))]
    if name:
        chosen = next((each for each in classes if each["metadata"]["name"] == name), None)
        if chosen is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", "", pod["metadata"].get("name", ""), why)
    else:
        chosen = max(
            (each for each in classes if each.get("globalDefault")), key=lambda each: each["value"], default=None
        )
    if chosen is not None:
        spec["priorityClassName"], spec["priority"] = chosen["metadata"]["name"], int(chosen["value"])
        spec["preemptionPolicy"] = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
