"""A node as the scheduler counts it: its allocatable resources, and what its pods hold."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from msgspec import Struct, field

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.rules.pod_requests import Amounts, amounts, host_ports, requests


class NodeView(Struct):
    """One node and the pods that are on it or about to be."""

    node: Object
    allocatable: Amounts
    held: Amounts = field(default_factory=dict)
    pods: list[Object] = field(default_factory=list)
    ports: set[tuple[str, int]] = field(default_factory=set)

    @property
    def name(self) -> str:
        return objects.name(self.node)

    def place(self, pod: Object) -> None:
        """Count one more pod."""
        self.pods.append(pod)
        self.ports |= host_ports(pod)
        for name, value in requests(pod).items():
            self.held[name] = self.held.get(name, Fraction(0)) + value

    def free(self, resource: str) -> Fraction:
        return self.allocatable.get(resource, Fraction(0)) - self.held.get(resource, Fraction(0))


def served_by_claim(there: Amounts, served: Iterable[str]) -> frozenset[str]:
    """The resources that a claim provides: `served` by a device class, and no device plugin of the node has any."""
    return frozenset(name for name in served if not there.get(name))


def could_hold(node: Object, pod: Object, served: Iterable[str]) -> bool:
    """Whether the node, if it were empty, has every resource that the pod names, including an extender's, or a claim
    could provide it.
    """
    there = amounts(_allocatable(node))
    claimed = served_by_claim(there, served)
    return all(name in claimed or value <= there.get(name, 0) for name, value in requests(pod).items())


def views(nodes: Iterable[Object], pods: Iterable[Object], assumed: Mapping[str, tuple[Object, str]]) -> list[NodeView]:
    """All nodes by name, with their pods and those `assumed` (uid -> pod, node), whose binding is in progress.

    A pod counts until it is finished or deleted: a terminating pod still holds its resources.
    """
    found: dict[str, NodeView] = {}
    for node in sorted(nodes, key=objects.name):
        found[objects.name(node)] = NodeView(node, amounts(_allocatable(node)))
    seen: set[str] = set()
    for pod in pods:
        view = found.get(str(objects.spec(pod).get("nodeName") or ""))
        if view is not None and not objects.is_finished(pod):
            view.place(pod)
            seen.add(objects.uid(pod))
    for uid, (pod, chosen) in assumed.items():
        if uid not in seen and chosen in found:
            found[chosen].place(pod)
    return list(found.values())


def _allocatable(node: Mapping[str, Any]) -> Mapping[str, Any]:
    status = objects.status(node)
    given: Mapping[str, Any] = status.get("allocatable") or status.get("capacity") or {}
    return given
