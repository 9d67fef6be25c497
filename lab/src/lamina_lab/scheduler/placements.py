"""Which pods are on which node, including those whose binding is in progress.

Counting everything for each decision would make a burst quadratic. The counts are kept, and rebuilt only after a pod
was removed or a node changed.
"""

from lamina.ports.kube import NODES, PODS, Object
from lamina_lab.informer.cache import Cache
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.rules.node_view import NodeView, views


class Placements:
    """Current counts per node. Must be notified of every change of a pod or node."""

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
        """Count a pod on a node before the API reports it."""
        counted = self._views
        self._assumed[objects.uid(pod)] = (pod, node)
        if counted is not None and node in counted:
            counted[node].place(pod)

    def forget(self, pod: Object) -> None:
        """The pod will not be bound."""
        if self._assumed.pop(objects.uid(pod), None) is not None:
            self._views = None

    def pod_changed(self, before: Object | None, after: Object | None) -> bool:
        """Take in a change of a pod. Returns whether it freed resources on a node."""
        pod = after or before
        assert pod is not None, "a change needs an object"
        if after is not None and objects.is_finished(after) == (before is not None and objects.is_finished(before)):
            node = objects.spec(after).get("nodeName")
            if node and (before is None or not objects.spec(before).get("nodeName")):
                _, assumed = self._assumed.pop(objects.uid(pod), (None, ""))
                if assumed != node:
                    self._views = None  # bound by another scheduler
            return False
        held = bool(objects.spec(pod).get("nodeName")) or objects.uid(pod) in self._assumed
        self._assumed.pop(objects.uid(pod), None)
        self._views = None
        return held

    def nodes_changed(self) -> None:
        self._views = None
