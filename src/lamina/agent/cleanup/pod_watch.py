"""Follows the pods of the node, to know which have ended."""

from lamina.agent.cleanup.survivors import SurvivorPublisher
from lamina.agent.context import NodeContext
from lamina.model.pod_status import has_terminated
from lamina.ports.kube import PODS, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED

_PHASES = ("Succeeded", "Failed")
_ENDED, _TERMINATED = "ended", "terminated"
"""Fields of a trimmed pod: whether it has ended, and whether its containers have terminated."""


class PodWatch:
    """Tells the publisher of survivors what happens to pods."""

    def __init__(self, node: NodeContext, survivors: SurvivorPublisher) -> None:
        self._node = node
        self._survivors = survivors

    async def run(self) -> None:
        fields = f"spec.nodeName={self._node.node}"
        async for kind, pod in follow(self._node.kube, self._node.clock, PODS, fields=fields, trim=self._trim):
            if kind == SYNCED:
                await self._survivors.observe_list()
            elif kind == DELETED or pod[_ENDED]:
                await self._survivors.observe_end(pod["metadata"]["uid"], terminated=pod[_TERMINATED])
            else:
                self._survivors.observe(pod["metadata"]["uid"])

    def _trim(self, pod: Object) -> Object:
        """The part of a pod that is read. One that cannot be read has not ended."""
        meta = {key: pod["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        trimmed: Object = {"metadata": meta, _ENDED: False, _TERMINATED: False}
        with self._node.aside.around("state of a pod", f"{meta['namespace']}/{meta['name']}"):
            ended = (pod.get("status") or {}).get("phase") in _PHASES
            trimmed |= {_ENDED: ended, _TERMINATED: has_terminated(pod)}
        return trimmed
