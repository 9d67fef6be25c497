"""Which pods are on which node, those included whose binding is still on its way.

Counting everything for each decision would make a burst quadratic, so the count is kept and only made anew after
something was taken away or a node changed.
"""

from lamina.lab.informer import objects
from lamina.lab.informer.cache import Cache
from lamina.lab.informer.objects import Object
from lamina.lab.scheduler.node_view import NodeView, views
from lamina.ports.kube import NODES, PODS


class Placed:
    """Nodes as counted now. Tell it of every change of a pod or node."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._assumed: dict[str, tuple[Object, str]] = {}
        self._views: dict[str, NodeView] | None = None

    def views(self) -> list[NodeView]:
        """All nodes, by name."""
        if self._views is None:
            counted = views(self._cache.list(NODES), self._cache.list(PODS), self._assumed)
            self._views = {view.name: view for view in counted}
        return list(self._views.values())

    def assume(self, pod: Object, node: str) -> None:
        """Count a pod on a node from now on, before the API says so."""
        counted = self._views
        self._assumed[objects.uid(pod)] = (pod, node)
        if counted is not None and node in counted:
            counted[node].place(pod)

    def forget(self, pod: Object) -> None:
        """The pod will not be bound after all."""
        if self._assumed.pop(objects.uid(pod), None) is not None:
            self._views = None

    def pod_changed(self, before: Object | None, after: Object | None) -> bool:
        """Take in a change of a pod; whether it gave something back to a node."""
        pod = after or before
        assert pod is not None, "a change is of something"
        if after is not None and objects.is_finished(after) == (before is not None and objects.is_finished(before)):
            node = objects.spec(after).get("nodeName")
            if node and (before is None or not objects.spec(before).get("nodeName")):
                _, assumed = self._assumed.pop(objects.uid(pod), (None, ""))
                if assumed != node:
                    self._views = None  # bound by somebody else
            return False
        held = bool(objects.spec(pod).get("nodeName")) or objects.uid(pod) in self._assumed
        self._assumed.pop(objects.uid(pod), None)
        self._views = None
        return held

    def nodes_changed(self) -> None:
        self._views = None
