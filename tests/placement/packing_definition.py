"""What the packing core computes, written to be read: the same integers, one node and one choice at a time.

`native/placement/packing.c` is the fast form; a test holds the two to equal answers. Amounts are in millionths of a
GPU, weights in millionths, wastes in their product.
"""

from collections.abc import Iterator
from itertools import groupby
from math import inf
from typing import NamedTuple

import numpy as np

from lamina.placement.packing.cluster import Ask, Cluster, as_bits
from lamina.placement.packing.coefficients import Coefficients

MAX_TRIES = 256
"""Sets of GPUs compared for one pod on one node. Single GPUs need one try for each GPU that differs."""


class Gpu(NamedTuple):
    """What is free of one GPU."""

    kind: int
    memory: int
    cores: int
    slots: int

    def takes(self, memory: int, cores: int) -> bool:
        """Whether it carries such a share; also one without a compute request needs that some is left."""
        return self.slots > 0 and self.memory >= memory and self.cores >= max(1, cores)

    def fill(self, memory: int, cores: int) -> int:
        """How many pods with this share fit one after the other."""
        if not self.takes(memory, cores):
            return 0
        by_memory = self.memory // memory if memory else self.slots
        by_cores = self.cores // cores if cores else self.slots
        return min(self.slots, by_memory, by_cores)


def level(cluster: Cluster, policy: Coefficients, ask: Ask, row: int) -> tuple[float, int]:
    """How good the best placement of the pod on the node is, and its GPUs as bits; -inf where it does not fit."""
    gpus = [
        Gpu(*(int(array[row, i]) for array in (cluster.kind, cluster.gpu_memory, cluster.gpu_cores, cluster.slots)))
        for i in range(cluster.kind.shape[1])
        if cluster.kind[row, i] >= 0
    ]
    if not gpus or not cluster.feasible(ask, slice(row, row + 1))[0]:
        return -inf, 0
    cpu, memory = int(cluster.cpu[row]), int(cluster.memory[row])
    before = waste_of(cluster, policy, gpus, cpu, memory)
    best, chosen = -inf, 0
    for tried, places in enumerate(_choices(gpus, ask)):
        if tried == MAX_TRIES:
            break
        after = [_with(gpu, ask) if i in places else gpu for i, gpu in enumerate(gpus)]
        gain = before - waste_of(cluster, policy, after, cpu - ask.cpu, memory - ask.memory)
        reached = _level_of(policy, gain)
        if reached > best:
            best, chosen = reached, as_bits(places)
    return best, chosen


def waste_of(cluster: Cluster, policy: Coefficients, gpus: list[Gpu], cpu: int, memory: int) -> int:
    """The waste that the usual pods would find on a node with these GPUs, cores and host memory free."""
    amounts = [_amount(cluster, policy, gpu) for gpu in gpus]
    total, first = sum(amounts), gpus[0].kind
    idle = sum(_is_idle(cluster, gpu) for gpu in gpus)
    found = sum(amount * int(policy.gpu_price[gpu.kind]) for gpu, amount in zip(gpus, amounts, strict=True))
    found += cpu * int(policy.cpu_price[first])
    found += sum(_remainder(cluster, policy, gpu) for gpu in gpus)
    found += int(policy.idle[idle]) + (int(policy.all_idle) if idle == len(gpus) else 0)
    for m, j in enumerate(policy.class_share.tolist()):
        host = _times(cpu, policy.host_cpu[policy.class_host[m]], memory, policy.host_memory[policy.class_host[m]])
        count, cores = int(policy.share_count[j]), int(policy.share_cores[j])
        wanted = policy.share_memory[j].tolist()
        fits = [gpu.takes(wanted[gpu.kind], cores) for gpu in gpus]
        enough = sum(fits) >= count
        unfit = sum(amount for amount, able in zip(amounts, fits, strict=True) if not able)
        found += int(policy.one_weight[m]) * (unfit if enough and host else total)
        pods = sum(gpu.fill(wanted[gpu.kind], cores) for gpu in gpus) // count if enough else 0
        used = min(pods, host) * int(policy.share_amount[j, first])
        found += int(policy.fill_weight[m]) * max(0, total - used)
    for weight, by_gpu, by_cpu in zip(policy.hinge_weight, policy.hinge_gpu, policy.hinge_cpu, strict=True):
        found += int(weight) * max(0, total * int(by_gpu) + cpu * int(by_cpu))
    return found


def _choices(gpus: list[Gpu], ask: Ask) -> Iterator[tuple[int, ...]]:
    """Sets of GPUs for the pod, equal ones once: of GPUs alike the first, and many of one before few."""
    alike = {gpu: [i for i, other in enumerate(gpus) if other == gpu] for gpu, _ in groupby(gpus)}
    groups = [places for gpu, places in alike.items() if gpu.takes(ask.gpu_memory[gpu.kind], ask.gpu_cores)]

    def take(start: int, left: int) -> Iterator[tuple[int, ...]]:
        if not left:
            yield ()
            return
        for g in range(start, len(groups)):
            for n in range(min(left, len(groups[g])), 0, -1):
                for others in take(g + 1, left - n):
                    yield (*groups[g][:n], *others)

    return take(0, ask.gpus)


def _with(gpu: Gpu, ask: Ask) -> Gpu:
    return Gpu(gpu.kind, gpu.memory - ask.gpu_memory[gpu.kind], gpu.cores - ask.gpu_cores, gpu.slots - 1)


def _thousandths(cluster: Cluster, gpu: Gpu) -> tuple[int, int]:
    memory, cores = int(cluster.full_memory[gpu.kind]), int(cluster.full_cores[gpu.kind])
    return max(0, min(1000, gpu.memory * 1000 // memory)), max(0, min(1000, gpu.cores * 1000 // cores))


def _amount(cluster: Cluster, policy: Coefficients, gpu: Gpu) -> int:
    memory, cores = _thousandths(cluster, gpu)
    return memory * policy.parts[0] + cores * policy.parts[1]


def _remainder(cluster: Cluster, policy: Coefficients, gpu: Gpu) -> int:
    both = min(_thousandths(cluster, gpu)) if gpu.slots else 0
    return int(policy.remainder[gpu.kind, both]) + (_amount(cluster, policy, gpu) - 1000 * both) * int(policy.unpaired)


def _is_idle(cluster: Cluster, gpu: Gpu) -> bool:
    return bool(gpu.memory == cluster.full_memory[gpu.kind] and gpu.cores == cluster.full_cores[gpu.kind])


def _times(cpu: int, host_cpu: float, memory: int, host_memory: float) -> int:
    """For how many pods of a class the node has CPU and host memory."""
    return min(2**31 - 1, cpu // int(host_cpu), memory // int(host_memory))


def _level_of(policy: Coefficients, gain: int) -> float:
    if len(policy.levels):
        return float(np.searchsorted(policy.levels, gain, side="right"))
    return float(gain // int(policy.step))
