"""Which of the fitting nodes is best: the extender's scores first, the emptier node as a tie-breaker."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from lamina_lab.scheduler.rules.node_view import NodeView
from lamina_lab.scheduler.rules.pod_requests import Amounts

MAX_SCORE = 100
_COUNTED = ("cpu", "memory")
_NONE = Fraction(0)


def least_allocated(view: NodeView, asked: Amounts) -> float:
    """0 to 100: the mean free fraction of CPU and memory after the pod is placed."""
    parts = []
    for name in _COUNTED:
        total = view.allocatable.get(name, _NONE)
        if total > 0:
            free = view.free(name) - asked.get(name, _NONE)
            parts.append(max(0.0, float(free / total)) * MAX_SCORE)
    return sum(parts) / len(parts) if parts else 0.0


def best(views: Sequence[NodeView], asked: Amounts, extender: Mapping[str, float]) -> str:
    """The name of the best node. Ties go to the node with fewer pods, then to the first name, which is deterministic.

    `extender` holds weighted scores by node; nodes without a score have 0.
    """

    def worth(view: NodeView) -> tuple[float, float, int]:
        return extender.get(view.name, 0.0), least_allocated(view, asked), -len(view.pods)

    return max(sorted(views, key=lambda view: view.name), key=worth).name
