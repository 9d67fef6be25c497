"""The nodes of a cluster as kube-scheduler sees them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lamina.core.pod_status import is_over
from lamina.placement.explanation.summary import Miss
from lamina.placement.hosts.refusals import HostRefusal, refusals
from lamina.placement.hosts.room import Room
from lamina.placement.rules.refusal import Cause

_GONE = HostRefusal(Miss("the node no longer exists", Cause.UNSCHEDULABLE, True, (-3, 0, 0.0)), ())


class Hosts:
    """Node objects with the pods on them. `skipped` says of which resources others keep the count."""

    def __init__(
        self,
        nodes: Iterable[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
        skipped: Callable[[str], bool],
    ) -> None:
        self._nodes = {str(node["metadata"]["name"]): (node, Room(node, skipped)) for node in nodes}
        for pod in pods:
            node = (pod.get("spec") or {}).get("nodeName")
            if node and not is_over(pod):
                self.take(pod, str(node))

    def node(self, name: str) -> Mapping[str, Any] | None:
        """The object of the node, None where there is none."""
        return self._nodes[name][0] if name in self._nodes else None

    def take(self, pod: Mapping[str, Any], node: str, times: int = 1) -> None:
        """Count one more pod on the node, or with -1 one less."""
        if node in self._nodes:
            self._nodes[node][1].take(pod, times)

    def refusals(self, pod: Mapping[str, Any], node: str) -> tuple[HostRefusal, ...]:
        """All that keeps the pod from the node; nothing where it may go there."""
        if node not in self._nodes:
            return (_GONE,)
        return tuple(refusals(pod, *self._nodes[node]))

    def miss(self, pod: Mapping[str, Any], node: str) -> Miss | None:
        """The same in one sentence, with the first of the causes."""
        found = [refusal.miss for refusal in self.refusals(pod, node)]
        if not found:
            return None
        return found[0]._replace(
            reason="; ".join(miss.reason for miss in found), lasting=any(miss.lasting for miss in found)
        )
