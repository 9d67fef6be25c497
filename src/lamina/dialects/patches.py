"""What admission changes in a pod or workload, as operations of JSON Patch."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dialects.containers import ContainerManifest


class PatchOperation(NamedTuple):
    """One operation: a JSON pointer and the value to add there; with the operation `remove` there is no value."""

    pointer: str
    value: Any = None
    op: str = "add"

    def to_json(self) -> dict[str, Any]:
        """As an operation of JSON Patch."""
        operation = {"op": self.op, "path": self.pointer}
        return operation if self.op == "remove" else {**operation, "value": self.value}


def escape_pointer(name: str) -> str:
    """The name as one part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def add_metadata(field: str, present: Mapping[str, str] | None, entries: Mapping[str, str]) -> Iterator[PatchOperation]:
    """Add these labels or annotations to a pod; `present` are those that it has."""
    if not present:
        yield PatchOperation(f"/metadata/{field}", {})
    for name, value in entries.items():
        yield PatchOperation(f"/metadata/{field}/{escape_pointer(name)}", value)


def add_limits(container: ContainerManifest, limits: Mapping[str, str]) -> Iterator[PatchOperation]:
    """Add these limits to a container."""
    if not limits:
        return
    resources = container.spec.get("resources")
    if not resources:
        yield PatchOperation(f"{container.pointer}/resources", {})
    pointer = f"{container.pointer}/resources/limits"
    if not (resources or {}).get("limits"):
        yield PatchOperation(pointer, {})
    for name, amount in limits.items():
        yield PatchOperation(f"{pointer}/{escape_pointer(name)}", amount)


def add_request(container: ContainerManifest, name: str, amount: str) -> Iterator[PatchOperation]:
    """Replace a request of the container, where it has one."""
    if name in ((container.spec.get("resources") or {}).get("requests") or {}):
        yield PatchOperation(f"{container.pointer}/resources/requests/{escape_pointer(name)}", amount)


def rename_resource(container: ContainerManifest, name: str, new: str) -> Iterator[PatchOperation]:
    """Give the amounts of a resource in the container's limits and requests another name."""
    for field in ("limits", "requests"):
        amounts = (container.spec.get("resources") or {}).get(field) or {}
        if name in amounts:
            pointer = f"{container.pointer}/resources/{field}"
            yield PatchOperation(f"{pointer}/{escape_pointer(new)}", amounts[name])
            yield PatchOperation(f"{pointer}/{escape_pointer(name)}", op="remove")


def remove_resource(container: ContainerManifest, name: str) -> Iterator[PatchOperation]:
    """Remove the resource from the container's limits and requests."""
    for field in ("limits", "requests"):
        if name in ((container.spec.get("resources") or {}).get(field) or {}):
            yield PatchOperation(f"{container.pointer}/resources/{field}/{escape_pointer(name)}", op="remove")
