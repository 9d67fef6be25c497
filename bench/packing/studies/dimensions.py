"""Memory and compute as two dimensions. The list has one number for a share; here it is the compute, and a kind of pod
asks 1/2, 3/4, 1, 5/4 or 3/2 of that in memory, at most a whole GPU's, by the order of its frequency among shares.
"""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from bench.measures import Report
from bench.packing.studies.study import arrivals_only
from bench.packing.traces import GPU, Nodes, Pod

MEMORY = (0.75, 1.25, 1.0, 0.5, 1.5)


def two_dimensions(pods: Sequence[Pod]) -> list[Pod]:
    """The pods with a memory share of their own. A request counts as the mean of both parts."""
    kinds = Counter(pod.ask for pod in pods if pod.ask.gpus == 1 and pod.ask.gpu_cores < GPU)
    memory = {ask: _memory(ask.gpu_cores, i) for i, (ask, _) in enumerate(kinds.most_common())}
    made = []
    for pod in pods:
        if pod.ask in memory:
            wanted = memory[pod.ask]
            ask = pod.ask._replace(gpu_memory=(wanted,) * len(pod.ask.gpu_memory))
            made.append(Pod(ask, (wanted + ask.gpu_cores) // 2))
        else:
            made.append(pod)
    return made


def _memory(cores: int, number: int) -> int:
    return min(GPU, int(cores * MEMORY[number % len(MEMORY)]))


def run(report: Report, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """Policies on the default list with two dimensions."""
    return arrivals_only(report, "dimensions", "memory and compute apart", nodes, two_dimensions(pods), seeds)
