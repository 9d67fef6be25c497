"""Which of the nodes that will do is best: the extender's opinion first, the emptier node as a tie-breaker."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from lamina.lab.scheduler.node_view import NodeView
from lamina.lab.scheduler.pod_requests import Amounts

MAX_SCORE = 100
_COUNTED = ("cpu", "memory")
_NONE = Fraction(0)


def least_allocated(view: NodeView, asked: Amounts) -> float:
    """0 to 100: the mean free part of CPU and memory once the pod is there."""
    parts = []
    for name in _COUNTED:
        total = view.allocatable.get(name, _NONE)
        if total > 0:
            free = view.free(name) - asked.get(name, _NONE)
            parts.append(max(0.0, float(free / total)) * MAX_SCORE)
    return sum(parts) / len(parts) if parts else 0.0


def best(views: Sequence[NodeView], asked: Amounts, extender: Mapping[str, float]) -> str:
    """The name of the best node; of equals the one with fewer pods, then the first by name: decisions can be repeated.

    `extender` holds weighted scores by node; nodes it does not name have 0.
    """

    def worth(view: NodeView) -> tuple[float, float, int]:
        return extender.get(view.name, 0.0), least_allocated(view, asked), -len(view.pods)

    return max(sorted(views, key=lambda view: view.name), key=worth).name
