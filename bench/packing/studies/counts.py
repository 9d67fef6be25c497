"""Pods that ask shares of several GPUs: every fourth kind of share under half a GPU asks two, every eighth four."""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from bench.measures import Report
from bench.packing.studies.study import arrivals_only
from bench.packing.traces import GPU, Nodes, Pod


def several(pods: Sequence[Pod]) -> list[Pod]:
    """The pods, some of which ask their share of two or four GPUs."""
    kinds = Counter(pod.ask for pod in pods if pod.ask.gpus == 1 and pod.ask.gpu_cores < GPU // 2)
    count = {ask: 4 if i % 8 == 7 else 2 if i % 4 == 3 else 1 for i, (ask, _) in enumerate(kinds.most_common())}
    made = []
    for pod in pods:
        n = count.get(pod.ask, 1)
        made.append(Pod(pod.ask._replace(gpus=n), n * pod.asked) if n > 1 else pod)
    return made


def run(report: Report, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """Policies on the default list with shares of several GPUs."""
    return arrivals_only(report, "counts", "shares of several GPUs", nodes, several(pods), seeds)
