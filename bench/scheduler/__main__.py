"""`python -m bench.scheduler`: prints the table, writes the file, ends with 1 when a floor is broken."""

import argparse
import asyncio
import statistics
from collections.abc import Mapping

from bench.control_plane import KUBERNETES
from bench.machine import cpu_s
from bench.measures import Report, add_outputs
from bench.parts import Part
from bench.program import add_parts, chosen, end_with
from bench.scheduler import cluster, load
from bench.scheduler.core import Core, hopeless, known, p99, unknown
from bench.scheduler.gangs import MEMBERS, Gangs
from bench.scheduler.side_by_side import side_by_side
from lamina.core.component_names import FILTER_TO_BEST
from lamina.ports.kube import Object

CURVE = (100, 1_000, 5_000, 10_000, 20_000)
_QUICK = ("--nodes", "25", "--pods", "20", "--rounds", "1", "--members", "10", "--new-pods", "5")
PARTS = {
    "decisions": Part(about="what a decision costs, without HTTP", smallest=_QUICK),
    "curve": Part(about="a filter's median against the number of nodes", smallest=_QUICK),
    "gangs": Part(about="places for a pod group of a thousand members", smallest=_QUICK),
    "http": Part(about="the controller as a process, called as kube-scheduler calls it", smallest=_QUICK),
    "side-by-side": Part(
        about="kube-scheduler itself, with Lamina and without", needs=(KUBERNETES,), smallest=_QUICK, usual=False
    ),
}


def decisions(report: Report, nodes: int, rounds: int) -> None:
    """What a decision costs, without HTTP."""
    made = Core(nodes)
    made.filters(100, known)
    report.add("filter-p99", "ms", ours=p99(made.filters(10 * rounds, known)))
    report.add("filter-unknown-p99", "ms", ours=p99(made.filters(2 * rounds, unknown)))
    report.add("filter-hopeless-p99", "ms", ours=p99(made.filters(2 * rounds, hopeless)))
    report.add("filter-hopeless-again-p99", "ms", ours=p99(made.filters(2 * rounds, lambda number: hopeless(7))))
    report.control("filter-p99", "ms", ours=p99(made.walks(5)))
    report.add("placements", "pods/s", ours=made.placements_per_s(2 * rounds, nodes))
    report.add("decisions", "1/s", ours=made.decisions_per_s(100 * rounds))


def curve(report: Report, most: int, rounds: int) -> None:
    """A filter's median against the number of nodes, at most this one."""
    for nodes in (each for each in CURVE if each <= most):
        made = Core(nodes)
        made.filters(100, known)
        report.add(f"filter-{nodes}-nodes", "ms", ours=statistics.median(made.filters(2 * rounds, known)) * 1e3)


def gangs(report: Report, nodes: int, members: int) -> None:
    """Places for a large pod group."""
    made = Gangs(nodes, members)
    report.add("gang-1000", "ms", ours=made.plan_ms())
    report.control("gang-1000", "ms", ours=made.searched_anew_ms())


async def whole(nodes: int, pods: int, rounds: int, kind: str = "server") -> Mapping[tuple[str, str], float]:
    """The controller as a process, called over HTTP the way kube-scheduler calls it: by name and unit of the measures.

    First come pods that prefer no node, then those that do, for which it is asked for scores too.
    """
    async with load.control(nodes, pods, kind) as control:
        first, measured, particular = _new_pods(0, 2 * rounds), _new_pods(10_000, 5 * rounds), _new_pods(20_000, rounds)
        await control.create(first)
        await load.schedule(control, first)
        for times in control.times.values():
            times.clear()
        asked, used = await control.requests(), cpu_s(control.pid)
        await control.create(measured)
        seconds = await load.schedule(control, measured)
        count = len(measured)
        cpu_ms = (cpu_s(control.pid) - used) / count * 1e3
        requests = (await control.requests() - asked) / count
        pods_per_s = (count - control.refused) / seconds
        await control.create(list(map(cluster.preferring, particular)))
        await load.schedule(control, particular)
        return {
            ("start", "s"): control.start_s,
            ("http-filter-p99", "ms"): p99(control.times[FILTER_TO_BEST]),
            ("http-prioritize-p99", "ms"): p99(control.times["prioritize"]),
            ("http-bind-median", "ms"): statistics.median(control.times["bind"]) * 1e3,
            ("http-pods", "pods/s"): pods_per_s,
            ("http-cpu", "ms/pod"): cpu_ms,
            ("http-requests", "1/pod"): requests,
            ("refused-binds", ""): control.refused,
            ("memory", "MiB"): control.resident_mib(),
        }


def add_whole(report: Report, nodes: int, pods: int, rounds: int) -> None:
    """The controller, and a wasteful one that must break each floor."""
    for (name, unit), value in asyncio.run(whole(nodes, pods, rounds)).items():
        report.add(name, unit, ours=value)
    wasteful = asyncio.run(whole(nodes, pods, max(rounds // 5, 1), "wasteful"))
    for (name, unit), value in wasteful.items():
        if report.measures[name].floor is not None:
            report.control(name, unit, ours=value)


def with_and_without(report: Report, nodes: int, pods: int) -> None:
    """kube-scheduler itself, with Lamina and without an extender."""
    runs = asyncio.run(side_by_side(nodes, pods))
    plain, ours = runs["plain"], runs["server"]
    report.add("kube-pods", "pods/s", native=plain.pods_per_s, ours=ours.pods_per_s)
    report.add("kube-cpu", "ms/pod", ours=ours.controller_ms)
    report.add("kube-requests", "1/pod", native=plain.requests, ours=ours.requests)
    report.control("kube-pods", "pods/s", native=plain.pods_per_s, ours=runs["wasteful"].pods_per_s)
    report.control("kube-cpu", "ms/pod", ours=runs["wasteful"].controller_ms)
    report.control("kube-requests", "1/pod", native=plain.requests, ours=runs["wasteful"].requests)
    report.add("kube-pods-undecided", "pods/s", native=plain.pods_per_s, ours=runs["undecided"].pods_per_s)
    for program, taken_ms in ours.placing_ms.items():
        report.add(f"placing-cpu-{program}", "ms/pod", native=plain.placing_ms.get(program), ours=taken_ms)


def _new_pods(first: int, count: int) -> list[Object]:
    return [cluster.new_pod(f"new-{number}") for number in range(first, first + count)]


def main() -> int:
    """Runs all parts."""
    parser = argparse.ArgumentParser(prog="python -m bench.scheduler", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    parser.add_argument("--nodes", type=int, default=5000, help="nodes of 8 GPUs (default 5000)")
    parser.add_argument("--pods", type=int, default=20_000, help="pods that run (default 20000)")
    parser.add_argument("--rounds", type=int, default=100, help="a hundredth of the longest series (default 100)")
    parser.add_argument("--members", type=int, default=MEMBERS, help=f"of the pod group (default {MEMBERS})")
    parser.add_argument("--new-pods", type=int, default=600, help="pods of side-by-side (default 600)")
    options = parser.parse_args()
    wanted, report = chosen(parser, PARTS, options), Report("scheduler")
    if "decisions" in wanted:
        decisions(report, options.nodes, options.rounds)
    if "curve" in wanted:
        curve(report, 4 * options.nodes, options.rounds)
    if "gangs" in wanted:
        gangs(report, options.nodes, options.members)
    if "http" in wanted:
        add_whole(report, options.nodes, options.pods, options.rounds)
    if "side-by-side" in wanted:
        with_and_without(report, options.nodes, options.new_pods)
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
