"""What a node offers next to GPUs, and what its pods take of it, counted as kube-scheduler counts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.core.host_size import asked_of, offered_of

PODS = "pods"
"""The resource of which each pod takes one."""


class Lack(NamedTuple):
    """A resource of which a node has too little for a pod, in thousandths of CPU or in whole units."""

    resource: str
    needed: int
    free: int
    offered: int


class Room:
    """One node. `skipped` says of which resources others keep the count."""

    def __init__(self, node: Mapping[str, Any], skipped: Callable[[str], bool]) -> None:
        self._node = node
        self._skipped = skipped
        self._taken: dict[str, int] = {}

    def take(self, pod: Mapping[str, Any], times: int = 1) -> None:
        """Count one more pod on the node, or with -1 one less."""
        for resource, amount in self._asked(pod).items():
            self._taken[resource] = self._taken.get(resource, 0) + times * amount

    def lacks(self, pod: Mapping[str, Any]) -> Iterator[Lack]:
        """All that is missing for one more pod."""
        for resource, needed in sorted(self._asked(pod).items()):
            offered = offered_of(self._node, resource)
            free = offered - self._taken.get(resource, 0)
            if needed > max(0, free) and (offered or resource != PODS):
                yield Lack(resource, needed, max(0, free), offered)

    def _asked(self, pod: Mapping[str, Any]) -> dict[str, int]:
        spec = pod.get("spec") or {}
        asked = {name: asked_of(spec, name) for name in _resources(spec) if not self._skipped(name)}
        return {PODS: 1} | {name: amount for name, amount in asked.items() if amount > 0}


def _resources(spec: Mapping[str, Any]) -> set[str]:
    """The names of all that the pod requests."""
    parts = [spec, *(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    names = set(spec.get("overhead") or ())
    for part in parts:
        resources = part.get("resources") or {}
        names.update(resources.get("requests") or (), resources.get("limits") or ())
    return names
