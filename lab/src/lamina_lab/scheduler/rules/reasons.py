"""Why a pod is unschedulable, in kube-scheduler's form: `0/2 nodes are available: 2 Insufficient cpu.`"""

from collections import Counter
from collections.abc import Mapping, Sequence

NO_NODES = "no nodes available to schedule pods"


def sentence(nodes: int, why: Mapping[str, Sequence[str]]) -> str:
    """One sentence for `nodes` nodes. Equal reasons in `why` (reasons per node) are counted together."""
    if nodes == 0:
        return NO_NODES
    counts = Counter(reason.rstrip(".") for given in why.values() for reason in given)
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    text = f"0/{nodes} nodes are available"
    return f"{text}: {', '.join(listed)}." if listed else f"{text}."
