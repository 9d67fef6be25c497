"""Inventory and Grant objects as the API server keeps them, to and from the types of their specs.

Readers take an object and raise BadInput if its spec cannot be read; writers return a spec as plain JSON values, which
compare equal to what the API server returns.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.errors import BadInput

T = TypeVar("T")


def read_inventory(obj: Mapping[str, Any]) -> Inventory:
    """The inventory in an Inventory object. Raises BadInput for one that is unreadable or names another node."""
    name = obj["metadata"]["name"]
    inventory = _read(obj, Inventory, f"inventory {name}")
    if inventory.node != name:
        raise BadInput(f"inventory {name}: spec.node must be the name of the inventory, got {inventory.node}")
    return inventory


def confirmed_survivors(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of the survivors of an Inventory object that had a grant on the node, as <namespace>/<UID>. The controller
    says so in its status; none where there is no status yet, or an odd one."""
    found = (obj.get("status") or {}).get("survivors") or ()
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list | tuple) else ()


def read_grant(obj: Mapping[str, Any]) -> Grant:
    """The grant in a Grant object. Raises BadInput for one that is unreadable."""
    meta = obj["metadata"]
    return _read(obj, Grant, f"grant {meta.get('namespace')}/{meta['name']}")


def write_spec(kind: Inventory | Grant) -> dict[str, Any]:
    """The spec of the object for an inventory or a grant."""
    spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(kind))
    return spec


def _read(obj: Mapping[str, Any], kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(obj.get("spec"), kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where} cannot be read: {error}") from error
