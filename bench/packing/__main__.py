"""`python -m bench.packing`: how much of a cluster each policy allocates, compared with published figures.

Replays pod lists of the openb trace's format by the protocol of Weng et al. (USENIX ATC'23): pods in random order until
130 % of the GPUs are requested, none leaves, none is tried twice. Ends with 1 when a floor is broken.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.control_plane import KUBERNETES
from bench.measures import Report, add_outputs
from bench.packing.live import live_run
from bench.packing.policies import POLICIES
from bench.packing.published import FGD, published
from bench.packing.replay import replay
from bench.packing.studies import STUDIES
from bench.packing.traces import TINY, TRACES, Nodes, NoTrace, missing, names, read_nodes, read_pods
from bench.parts import Need, Part, package
from bench.program import add_parts, chosen, end_with

FIRST_SEED = 42
POINTS = (100, 130)
SEEDS, LIVE_SEEDS = 10, 3
_LISTS = Need("pod lists of the openb trace", missing, unless="traces")
_QUICK = ("--traces", str(TINY), "--seeds", "1")
_HIGHSPY = package("highspy", "bench", only_some=True)
PARTS = {
    "lists": Part(
        about="what each policy allocates of each list, next to what was published", needs=(_LISTS,), smallest=_QUICK
    ),
    "scheduler": Part(
        about="the default list through a real kube-scheduler", needs=(_LISTS, KUBERNETES), smallest=_QUICK, usual=False
    ),
    **{
        name: Part(about=f"a study: {about}", needs=(_LISTS, *needs), smallest=_QUICK, usual=False)
        for name, about, *needs in (
            ("departures", "pods that come and go"),
            ("dimensions", "memory and compute as two dimensions"),
            ("counts", "shares of several GPUs"),
            ("cards", "unlike cards"),
            ("mig", "MIG instances", _HIGHSPY),
            ("defragmentation", "GPUs that become idle by moving pods"),
        )
    },
}
_FORGETFUL_NODES = 150
"""Enough for binds to be refused."""

Result = tuple[float, float, float]
"""Percent allocated at 100 and at 130 % requested, and microseconds per decision."""


def measure(nodes: Nodes, folder: Path, trace: str, policy: str, seeds: int) -> Result:
    """Means over seeds."""
    pods = read_pods(folder, trace, nodes.models)
    runs = [replay(nodes, pods, POLICIES[policy], FIRST_SEED + i) for i in range(seeds)]
    at = [100 * float(np.mean([run.allocated[point] for run in runs])) for point in POINTS]
    return at[0], at[1], 1e6 * float(np.median([run.seconds for run in runs]))


def table(results: dict[tuple[str, str], Result], point: int) -> Table:
    """Lists by policies at one point, and what was published."""
    made = Table(title=f"percent of GPUs allocated at {point} % requested", box=None, pad_edge=False)
    policies = list(dict.fromkeys(policy for _, policy in results))
    for heading in ("list", *policies, "FGD published"):
        made.add_column(heading, justify="left" if heading == "list" else "right")
    i = POINTS.index(point)
    for trace in dict.fromkeys(trace for trace, _ in results):
        cells = [f"{results[trace, policy][i]:.2f}" for policy in policies]
        made.add_row(trace, *cells, f"{FGD[trace][i]:.2f}" if trace in FGD else "")
        published_figures = [published(trace, policy) for policy in policies]
        if trace == "default":
            row = [f"{figures[i]:.2f}" if figures else "" for figures in published_figures]
            made.add_row("  published", *row, style="dim")
    return made


def judge(report: Report, results: dict[tuple[str, str], Result]) -> None:
    """The measures with their floors; `random` must break those of `ours`."""
    for (trace, policy), (at_100, at_130, micros) in results.items():
        for point, value in zip(POINTS, (at_100, at_130), strict=True):
            fgd = FGD.get(trace, (None, None))[POINTS.index(point)]
            name = f"{trace}-{point}" if policy == "ours" else f"{policy}-{trace}-{point}"
            report.add(name, "%", ours=value, native=fgd)
            if policy == "random" and trace == "default":
                report.control(f"default-{point}", "%", ours=value)
        if policy.startswith("ours"):
            report.add(f"{policy}-{trace}-decision", "us", ours=micros)
    for policy in dict.fromkeys(policy for _, policy in results):
        fgd_figures = {trace: FGD[trace] for trace, used in results if used == policy and trace in FGD}
        for i, point in enumerate(POINTS):
            over = [results[trace, policy][i] - figures[i] for trace, figures in fgd_figures.items()]
            if over and policy == "ours":
                report.add(f"least-over-fgd-{point}", "points", ours=min(over))
            if over and policy == "random":
                report.control(f"least-over-fgd-{point}", "points", ours=min(over))
    for policy in ("fgd", "best-fit"):
        figures = published("default", policy)
        if ("default", policy) in results and figures:
            off = max(abs(results["default", policy][i] - figures[i]) for i in range(len(POINTS)))
            report.add(f"{policy}-off-published", "points", ours=off)


def compare(report: Report, console: Console, nodes: Nodes, options: argparse.Namespace) -> None:
    """All lists under all policies."""
    results: dict[tuple[str, str], Result] = {}
    traces = options.trace or names(options.traces)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("replaying", total=len(traces) * len(options.policy))
        for trace in traces:
            for policy in options.policy:
                progress.update(task, description=f"{trace}, {policy}")
                results[trace, policy] = measure(nodes, options.traces, trace, policy, options.seeds or SEEDS)
                progress.advance(task)
    for point in POINTS:
        console.print(table(results, point))
    judge(report, results)


def schedule(report: Report, console: Console, nodes: Nodes, options: argparse.Namespace) -> None:
    """The default list through a real kube-scheduler, next to the replay."""
    pods = read_pods(options.traces, "default", nodes.models)
    seeds = [FIRST_SEED + i for i in range(options.seeds or LIVE_SEEDS)]
    runs = [asyncio.run(live_run(nodes, pods, seed)) for seed in seeds]
    few = nodes.first(_FORGETFUL_NODES)
    forgetful = asyncio.run(live_run(few, pods, FIRST_SEED, program="forgetful"))
    made = Table(title="percent of GPUs allocated at 100 % requested", box=None, pad_edge=False)
    for heading in ("seed", "kube-scheduler", "replay", "binds refused", "pods/s"):
        made.add_column(heading, justify="right")
    for seed, run in zip(seeds, runs, strict=True):
        replayed = 100 * replay(nodes, pods, POLICIES["ours-online"], seed).allocated[100]
        figures = f"{100 * run.allocated:.2f}", f"{replayed:.2f}", str(run.refused), f"{run.pods_per_s:.0f}"
        made.add_row(str(seed), *figures)
    console.print(made)
    replayed = [100 * replay(nodes, pods, POLICIES["random"], seed).allocated[100] for seed in seeds]
    report.add("scheduler-100", "%", ours=100 * float(np.mean([run.allocated for run in runs])))
    report.control("scheduler-100", "%", ours=float(np.mean(replayed)))
    report.add("scheduler-refused-binds", "", ours=sum(run.refused for run in runs))
    report.control("scheduler-refused-binds", "", ours=forgetful.refused)


def main() -> int:
    """Replays what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.packing", description=__doc__)
    add_parts(parser, PARTS)
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of the openb lists")
    parser.add_argument("--trace", nargs="+", metavar="NAME", help="pod lists, such as default (default: all)")
    parser.add_argument("--policy", nargs="+", choices=list(POLICIES), default=list(POLICIES), metavar="P")
    parser.add_argument("--seeds", type=int, help=f"runs of each (default {SEEDS}, of scheduler {LIVE_SEEDS})")
    add_outputs(parser)
    options = parser.parse_args()
    wanted = chosen(parser, PARTS, options)
    report, console = Report("packing"), Console(width=None if sys.stdout.isatty() else 140)
    try:
        nodes = read_nodes(options.traces)
        for part in wanted:
            if part == "lists":
                compare(report, console, nodes, options)
            elif part == "scheduler":
                schedule(report, console, nodes, options)
            else:
                pods = read_pods(options.traces, "default", nodes.models)
                console.print(STUDIES[part](report, nodes, pods, options.seeds or SEEDS))
    except NoTrace as error:
        sys.exit(str(error))
    return report.finish(options.json, console, options.html)


if __name__ == "__main__":
    end_with(main)
