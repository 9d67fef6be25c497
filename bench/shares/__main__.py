"""Which policy leaves the fewest pods waiting on unlike cards, for shares as HAMi's users ask them.

Three mixes of pods, each three times: until the cluster is full and no pod leaves, with departures, and with departures
where half more memory may be granted than there is. Binpack, which fits nothing but what is fullest, must break the
floor of the default policy.
"""

import argparse
import sys
from itertools import accumulate

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.measures import Report, add_outputs
from bench.parts import Part
from bench.program import add_parts, chosen, end_with
from bench.shares.workload import MIXES, gpus, nodes, pods
from lamina.simulation.replay import replay

POLICIES = ("binpack", "best-fit", "packing")
SETTINGS = {"none leaves": (1.0, False), "churn": (1.0, True), "churn, memory x 1.5": (1.5, True)}
PODS = 3000
PARTS = {"waiting": Part(about="pods that wait on unlike cards, by policy", smallest=("--pods", "60", "--part", "16"))}
FULL, BUSY = 1.15, 1.1
"""Parts of the GPUs: requested in sum where no pod leaves, and kept busy where pods leave."""


def waiting(mix: str, setting: str, policy: str, seed: int, *, count: int, part: int) -> float:
    """Pods that wait: at the end, or on average after the first third of a replay with departures."""
    scaling, departures = SETTINGS[setting]
    cluster = nodes(scaling)[::part]
    there = sum(len(node.gpus) for node in cluster)
    coming = pods(seed, count, MIXES[mix], BUSY * there)
    if not departures:
        asked = accumulate(gpus(pod.request) for pod in coming if pod.request is not None)
        coming = coming[: sum(1 for total in asked if total <= FULL * there) + 1]
    points = replay(cluster, coming, policy, departures=departures).points
    looked_at = points[len(points) // 3 :] if departures else points[-1:]
    return float(np.mean([point.waiting for point in looked_at]))


def main() -> int:
    """Replays all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench.shares", description=__doc__)
    add_parts(parser, PARTS)
    parser.add_argument("--pods", type=int, default=PODS, help=f"pods of each replay (default {PODS})")
    parser.add_argument("--part", type=int, default=1, help="one node in so many (default 1)")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each (default 1)")
    add_outputs(parser)
    options = parser.parse_args()
    chosen(parser, PARTS, options)
    report, console = Report("shares"), Console(width=None if sys.stdout.isatty() else 140)
    table = Table("mix", "setting", *POLICIES, title="pods that wait")
    sums = dict.fromkeys(POLICIES, 0.0)
    for mix in MIXES:
        for setting in SETTINGS:
            seeds = range(1, options.seeds + 1)
            size = {"count": options.pods, "part": options.part}
            means = {p: np.mean([waiting(mix, setting, p, s, **size) for s in seeds]) for p in POLICIES}
            table.add_row(mix, setting, *(f"{mean:.1f}" for mean in means.values()))
            for policy, mean in means.items():
                sums[policy] += float(mean)
    console.print(table)
    report.add("waiting", "pods", native=sums["best-fit"], ours=sums["packing"])
    report.control("waiting", "pods", native=sums["best-fit"], ours=sums["binpack"])
    return report.finish(options.json, console, options.html)


if __name__ == "__main__":
    end_with(main)
