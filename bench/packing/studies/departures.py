"""Pods that come and go. Lifetimes are the list's own, cut at twelve hours, because the fifty longest of its pods hold
nine tenths of its GPU time. Pods are drawn with replacement and come at random times, so many that they would keep
120 % of the GPUs busy; one that fits nowhere is dropped. A sixth of the nodes, the second of two half days counts.
"""

import heapq
from collections.abc import Sequence

import numpy as np
from rich.table import Table

from bench.measures import Report
from bench.packing.policies import POLICIES
from bench.packing.replay import Policy
from bench.packing.studies.study import COMPARED, FIRST_SEED, compare
from bench.packing.traces import Nodes, Pod, capacity

MAX_LIFE = 12 * 3600
LOAD = 1.2
PART = 6


def churn(nodes: Nodes, pods: Sequence[Pod], policy: Policy, seed: int) -> float:
    """The part of the GPUs allocated, averaged over the second half day."""
    random = np.random.default_rng(seed)
    some = nodes.part(PART, random)
    full = capacity(some)
    lives = np.clip([pod.deleted - pod.created for pod in pods], 1, MAX_LIFE)
    work = float(np.mean(lives * np.array([pod.asked for pod in pods])))
    pause = work / (LOAD * full)
    cluster = some.cluster(random.permutation(len(some.cpu)))
    chooser = policy(cluster, pods, random)
    leaving: list[tuple[float, int, int, int, Pod]] = []
    now, allocated, held, number = 0.0, 0, 0.0, 0

    def until(time: float) -> None:
        nonlocal now, held
        held += allocated * max(0.0, min(time, 2 * MAX_LIFE) - max(now, MAX_LIFE))
        now = time

    while now < 2 * MAX_LIFE:
        number += 1
        come = now + float(random.exponential(pause))
        while leaving and leaving[0][0] <= come:
            time, _, row, gpus, gone = heapq.heappop(leaving)
            until(time)
            cluster.release(row, gpus, gone.ask)
            chooser.changed(row)
            allocated -= gone.asked
        until(come)
        drawn = int(random.integers(len(pods)))
        pod = pods[drawn]
        found = chooser.best(pod.ask)
        if found is not None:
            cluster.take(*found, pod.ask)
            chooser.changed(found[0])
            allocated += pod.asked
            heapq.heappush(leaving, (come + float(lives[drawn]), number, *found, pod))
    return held / MAX_LIFE / full


def run(report: Report, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """Policies while pods come and go."""
    stranded = {}
    for policy in COMPARED:
        runs = [churn(nodes, pods, POLICIES[policy], FIRST_SEED + i) for i in range(seeds)]
        stranded[policy] = [100 - 100 * float(np.mean(runs))]
    return compare(report, "departures", "pods that come and go", ("mean over time",), stranded)
