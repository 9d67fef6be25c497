"""What the studies share: the policies they compare, and the table of what each leaves stranded."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table

from bench.measures import Report
from bench.packing.policies import POLICIES
from bench.packing.replay import replay
from bench.packing.traces import Nodes, Pod

Study = Callable[[Report, Nodes, Sequence[Pod], int], Table]
"""Takes the nodes, the default list and a number of seeds."""

COMPARED = ("best-fit", "fgd", "ours", "ours-online")
FIRST_SEED = 42


def arrivals_only(report: Report, name: str, title: str, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """The protocol of the lists with other pods or nodes."""
    stranded = {}
    for policy in COMPARED:
        runs = [replay(nodes, pods, POLICIES[policy], FIRST_SEED + i) for i in range(seeds)]
        stranded[policy] = [100 - 100 * float(np.mean([run.allocated[at] for run in runs])) for at in (100, 130)]
    return compare(report, name, title, ("at 100 % requested", "at 130 %"), stranded)


def compare(report: Report, name: str, title: str, headings: Sequence[str], stranded: dict[str, list[float]]) -> Table:
    """Percent of the GPUs that stay unused, by policy; the measures compare ours with FGD's."""
    table = Table(title=f"{title}: percent of GPU stranded", box=None, pad_edge=False)
    table.add_column("policy")
    for heading in headings:
        table.add_column(heading, justify="right")
    for policy, values in stranded.items():
        table.add_row(policy, *[f"{value:.2f}" for value in values])
    for policy in stranded:
        if policy.startswith("ours"):
            report.add(f"stranded-{name}{policy[4:]}", "%", ours=stranded[policy][-1], native=stranded["fgd"][-1])
    return table
