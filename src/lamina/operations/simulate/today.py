"""The cluster as a dump has it, as a result next to those of policies."""

from collections.abc import Sequence

from msgspec import structs

from lamina.simulation.replay import Replay, Result
from lamina.simulation.workload import SimNode, SimPod

TODAY = "today"
PENDING = "pending in the dump"
MISFIT = "running in the dump, where its request does not fit by Lamina's rules"


class _Kept(Replay):
    """Pods stay on the nodes that they have in the dump, and others wait."""

    def place(self, pod: SimPod, *, keep: bool, departs: bool) -> bool:
        return pod.node in self.rows and super().place(pod, keep=True, departs=departs)


def today(nodes: Sequence[SimNode], pods: Sequence[SimPod]) -> Result:
    """What is allocated now. The dump does not say for all systems which GPU of its node a pod has, so pods are packed
    within their node."""
    result = _Kept(nodes, pods, "binpack").run(departures=False, keep=True, progress=lambda done: None)
    pending = sum(not pod.node for pod in pods)
    counts = ((PENDING, pending), (MISFIT, len(result.waiting) - pending))
    return structs.replace(result, policy=TODAY, reasons=tuple(each for each in counts if each[1]))
