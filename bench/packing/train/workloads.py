"""Clusters and pods to train on: other ones in every generation, and none of those that the policy is reported on.

Nodes are a part of the list's. Pods are drawn one by one with replacement from a list whose sorts get new random
weights: pods without GPUs, shares, and pods for several GPUs become rarer or more frequent, and some pods lose their
wish for a model. So training cannot memorize the frequencies of the lists themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.packing.policies import published_fgd
from bench.packing.replay import Policy, Run, replay
from bench.packing.traces import GPU, Nodes, Pod, read_nodes, read_pods

LISTS = (
    "default",
    "cpu250",
    "gpushare40",
    "gpushare100",
    "gpuspec10",
    "gpuspec33",
    "multigpu20",
    "multigpu50",
)
"""Every family of lists; two with pods for several GPUs, since without them a policy learns to break up nodes."""

DEFAULT_SHARE = 0.3
"""How often the default list is drawn beyond its turn: real clusters are most like it."""


@dataclass(frozen=True)
class Draw:
    """One cluster and one list of pods, what FGD reaches on them, and the seed of their order."""

    base: str
    nodes: Nodes
    pods: list[Pod]
    seed: int
    fgd: tuple[float, float]

    def lead(self, policy: Policy) -> np.ndarray:
        """Points of allocation over FGD, around 100 % and at the end of the run."""
        return np.subtract(_reached(replay(self.nodes, self.pods, policy, self.seed, resampled=True)), self.fgd)


class Workloads:
    """Draws by seed, from the lists of these names in a folder."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.nodes = read_nodes(folder)
        self._names = names
        self.lists = {name: read_pods(folder, name, self.nodes.models) for name in {"default", *names}}

    def draw(self, seed: int, part: int) -> Draw:
        """A cluster of one node in `part` and pods for it."""
        random = np.random.default_rng(seed)
        base = "default" if random.random() < DEFAULT_SHARE else self._names[seed % len(self._names)]
        nodes = self.nodes.part(part, random)
        pods = reweighted(self.lists[base], random)
        reached = _reached(replay(nodes, pods, published_fgd, seed, resampled=True))
        return Draw(base, nodes, pods, seed, reached)


def reweighted(pods: Sequence[Pod], random: np.random.Generator) -> list[Pod]:
    """As many pods, drawn with weights by sort."""
    gpus = np.array([pod.ask.gpus for pod in pods])
    shared = (gpus == 1) & (np.array([pod.asked for pod in pods]) < GPU)
    weight = np.ones(len(pods))
    for sort, often, least, most in ((gpus == 0, 0.6, 0.35, 2.2), (shared, 0.5, 0.6, 2.5), (gpus > 1, 0.5, 0.5, 4.0)):
        if random.random() < often:
            weight[sort] *= np.exp(random.uniform(np.log(least), np.log(most)))
    kept = random.uniform(0.3, 1) if random.random() < 0.6 else 1.0
    free = random.random(len(pods)) > kept
    loose = [_without_wish(pod) if drop else pod for pod, drop in zip(pods, free, strict=True)]
    return [loose[i] for i in random.choice(len(pods), len(pods), p=weight / weight.sum())]


def _without_wish(pod: Pod) -> Pod:
    wanted = pod.ask.gpu_memory
    return replace(pod, ask=pod.ask._replace(gpu_memory=(min(wanted),) * len(wanted)))


def _reached(run: Run) -> tuple[float, float]:
    around = [value for at, value in run.allocated.items() if 98 <= at <= 102]
    end = [value for at, value in run.allocated.items() if 127 <= at <= 130]
    return 100 * float(np.mean(around)), 100 * float(np.mean(end))
