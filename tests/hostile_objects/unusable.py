"""Which odd objects the controller cannot use, by the functions that read one object each.

A pod whose request is wrong is not set aside: admission refuses it, and the filter says why on every node.
"""

from collections.abc import Callable
from typing import Any

from lamina.configuration import DEFAULT
from lamina.core.host_size import offered_by
from lamina.core.objects import read_inventory
from lamina.dialects import parse
from lamina.errors import BadInput
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.pod_stages import pod_state
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Object, Resource


def is_unusable(resource: Resource, obj: Object) -> bool:
    """Whether the object has to be set aside."""
    try:
        _READERS.get(resource, lambda _: None)(obj)
    except Exception:
        return True
    return False


def refusal(pod: Object) -> str:
    """Why the request of a pod is wrong, empty where it is not."""
    try:
        parse(pod, DEFAULT)
    except BadInput as problem:
        return str(problem)
    return ""


_READERS: dict[Resource, Callable[[Object], Any]] = {
    INVENTORIES: read_inventory,
    GRANTS: grant_record,
    PODS: pod_state,
    NODES: offered_by,
}
