"""The policies that are compared. All place by the same rules of `lamina.placement.packing`; they differ in scores."""

import ctypes
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.packing.fgd import fgd
from bench.packing.replay import Chooser, Policy
from bench.packing.traces import Pod
from lamina import native
from lamina.placement.packing import LIBRARY, Ask, Cluster, Packer, RequestCounts
from lamina.placement.packing.kernel import Kernel
from lamina.placement.packing.mix import Floats, Mix
from lamina.placement.packing.ranking import Ranking, free_parts, tightest
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import Weights, waste


class Scored:
    """A policy that scores all nodes for each pod, and takes the GPUs with least left on the best one."""

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        self.cluster = cluster
        self.random = random
        self.left = free_parts(cluster)
        self.capacity = (cluster.kind >= 0).sum(axis=1)
        self.cores = cluster.cpu.copy()

    def scores(self, ask: Ask) -> Floats:
        """One number for each node, higher is better; feasibility is looked at elsewhere."""
        raise NotImplementedError

    def gpus(self, row: int, ask: Ask) -> int:
        able = self.cluster.gpus_for(ask, np.array([row]))
        return int(tightest(self.left[[row]], able, ask.gpus)[0])

    def best(self, ask: Ask) -> tuple[int, int] | None:
        """The first of the feasible nodes with the highest score."""
        able = self.cluster.feasible(ask)
        scores = np.where(able, self.scores(ask), -np.inf)
        row = int(scores.argmax())
        return (row, self.gpus(row, ask)) if able[row] else None

    def changed(self, row: int) -> None:
        """Keeps what is left of the node's GPUs."""
        self.left[[row]] = free_parts(self.cluster, np.array([row]))


class Random(Scored):
    """Any feasible node, any GPU that fits."""

    def scores(self, ask: Ask) -> Floats:
        return self.random.random(len(self.cores))

    def gpus(self, row: int, ask: Ask) -> int:
        able = self.cluster.gpus_for(ask, np.array([row]))
        return int(tightest(self.random.random(able.shape), able, ask.gpus)[0])


class BinPack(Scored):
    """The node of which most GPU is taken, as `lamina.placement.search.policies` measures it."""

    sign = 1.0

    def scores(self, ask: Ask) -> Floats:
        return self.sign * (1.0 - self.left.sum(axis=1) / self.capacity)


class Spread(BinPack):
    """The node, and on it the GPU, of which least is taken."""

    sign = -1.0

    def gpus(self, row: int, ask: Ask) -> int:
        able = self.cluster.gpus_for(ask, np.array([row]))
        return int(tightest(-self.left[[row]], able, ask.gpus)[0])


class DotProduct(Scored):
    """Least product of what is free and what is asked, over cores and GPUs, in whole percent."""

    def scores(self, ask: Ask) -> Floats:
        asked = ask.gpus * ask.gpu_cores / 1000
        product = self.cluster.cpu / 128e3 * (ask.cpu / 128e3) + self.left.sum(axis=1) / 8 * (asked / 8)
        return np.floor(100 * (1 - product / 2))


class BestFit(Scored):
    """Least left over, in whole percent as published."""

    def scores(self, ask: Ask) -> Floats:
        asked = ask.gpus * ask.gpu_cores / 1000
        return np.floor(
            100 * (1 - 0.5 * (self.cluster.cpu - ask.cpu) / 128e3 - 0.5 * (self.left.sum(axis=1) - asked) / 8)
        )


class Clustering(Scored):
    """Nodes that hold pods of the same sort: shares, or whole GPUs by their number."""

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        super().__init__(cluster, random)
        self.held = np.zeros((len(cluster.cpu), cluster.kind.shape[1] + 1), bool)
        self.tag = 0

    def scores(self, ask: Ask) -> Floats:
        if not ask.gpus:
            return np.zeros(len(self.cores))
        self.tag = 0 if ask.gpu_cores < 1000 else ask.gpus
        same, sorts = self.held[:, self.tag], self.held.sum(axis=1)
        bonus = np.where(same, np.where(sorts == 1, 75, 50), np.where(sorts == 0, 25, 0))
        return np.floor(25 * (8 - self.left.sum(axis=1)) / 8 + bonus)

    def best(self, ask: Ask) -> tuple[int, int] | None:
        found = super().best(ask)
        if found is not None and ask.gpus:
            self.held[found[0], self.tag] = True
        return found


def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(native.path(LIBRARY)))


def published_fgd(cluster: Cluster, pods: Sequence[Pod], random: np.random.Generator) -> Chooser:
    """FGD with the list's frequencies, as its authors run it."""
    usual = Counter(pod.ask for pod in pods)
    policy = fgd(usual, cluster.full_memory, cluster.full_cores, cluster.supply())
    return Ranking(Kernel(library(), cluster, policy), len(cluster.cpu))


def with_weights(weights: Weights) -> Policy:
    """Ours with the list's frequencies: the same knowledge as FGD's."""

    def make(cluster: Cluster, pods: Sequence[Pod], random: np.random.Generator) -> Chooser:
        mix = Mix.of([pod.ask for pod in pods], cluster.full_memory, cluster.full_cores, cluster.supply())
        return Ranking(Kernel(library(), cluster, waste(mix, weights, library())), len(cluster.cpu))

    return make


class Online:
    """Ours as in a live cluster: it knows the pods that have come, those that found no place included."""

    def __init__(self, cluster: Cluster) -> None:
        self.packer = Packer(library(), cluster, RequestCounts())

    def best(self, ask: Ask) -> tuple[int, int] | None:
        self.packer.arrived(ask)
        return self.packer.best(ask)

    def changed(self, row: int) -> None:
        self.packer.changed(row)


POLICIES: dict[str, Policy] = {
    "random": lambda cluster, pods, random: Random(cluster, random),
    "spread": lambda cluster, pods, random: Spread(cluster, random),
    "binpack": lambda cluster, pods, random: BinPack(cluster, random),
    "dot-product": lambda cluster, pods, random: DotProduct(cluster, random),
    "clustering": lambda cluster, pods, random: Clustering(cluster, random),
    "best-fit": lambda cluster, pods, random: BestFit(cluster, random),
    "fgd": published_fgd,
    "ours": with_weights(TRAINED),
    "ours-online": lambda cluster, pods, random: Online(cluster),
}
