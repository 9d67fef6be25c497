"""One run of the paper's protocol: pods arrive in turn, none leaves, and one that fits nowhere is dropped."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench.packing.traces import Nodes, Pod, capacity
from lamina.placement.packing.cluster import Ask, Cluster

TUNED = 1.3
"""Arrivals go on until they ask 130 % of the cluster."""


class Chooser(Protocol):
    """A policy at work on a cluster."""

    def best(self, ask: Ask) -> tuple[int, int] | None:
        """The node's row and its GPUs as bits, or None."""

    def changed(self, row: int) -> None:
        """The cluster has changed in this row."""


Policy = Callable[[Cluster, Sequence[Pod], np.random.Generator], Chooser]
"""Makes a chooser for a cluster, given the pods of the list (whose frequencies it may know) and random numbers."""


@dataclass(frozen=True)
class Run:
    """Allocated parts of the cluster by requested percent, and seconds per decision."""

    allocated: dict[int, float]
    seconds: float
    decisions: int


def arrivals(pods: Sequence[Pod], limit: int, random: np.random.Generator, *, resampled: bool = False) -> list[Pod]:
    """All pods once in random order, then draws with replacement until the requests would pass `limit` thousandths.

    With `resampled` every pod is a draw.
    """
    drawn = [] if resampled else [pods[i] for i in random.permutation(len(pods))]
    total = sum(pod.asked for pod in drawn)
    while True:
        pod = pods[int(random.integers(len(pods)))]
        if total + (pod.asked // max(1, pod.ask.gpus)) > limit:
            return drawn
        drawn.append(pod)
        total += pod.asked


def replay(nodes: Nodes, pods: Sequence[Pod], policy: Policy, seed: int, *, resampled: bool = False) -> Run:
    """One run with its own shuffle of pods and nodes."""
    random = np.random.default_rng(seed)
    full = capacity(nodes)
    coming = arrivals(pods, int(TUNED * full), random, resampled=resampled)
    cluster = nodes.cluster(random.permutation(len(nodes.cpu)))
    chooser = policy(cluster, pods, random)
    requested = allocated = 0
    sums: dict[int, list[int]] = {}
    began = time.thread_time()
    for pod in coming:
        requested += pod.asked
        found = chooser.best(pod.ask)
        if found is not None:
            row, gpus = found
            cluster.take(row, gpus, pod.ask)
            chooser.changed(row)
            allocated += pod.asked
        bin = sums.setdefault(round(100 * requested / full), [0, 0])
        bin[0] += allocated
        bin[1] += 1
    spent = time.thread_time() - began
    shares = {percent: total / n / full for percent, (total, n) in sums.items()}
    return Run(shares, spent / len(coming), len(coming))
