"""A made cluster of unlike cards, and pods as HAMi's users write them.

Pods ask MiB and percent of time, percentages of memory, one or several whole GPUs, a tenth of them a certain model,
with CPU and host memory as well. They come at random times and stay for log-normal spans.
"""

from typing import NamedTuple

import numpy as np

from lamina.core.cards import card
from lamina.core.gpus import Gpu
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.simulation.workload import SimNode, SimPod

HARDWARE = (
    ("A100-SXM4-80GB", 8, 20, 128_000, 1_000_000),
    ("V100-SXM2-32GB", 8, 20, 64_000, 512_000),
    ("T4", 4, 24, 48_000, 192_000),
)
"""Card, GPUs of a node, nodes, thousandths of a core and MiB of each."""

_MIB = (2000, 3000, 4000, 6000, 8000, 10000, 12000, 16000, 24000)
_MIB_OFTEN = (0.1, 0.1, 0.2, 0.1, 0.2, 0.1, 0.08, 0.08, 0.04)


class Mix(NamedTuple):
    """The parts of pods that ask an amount, then a percentage, then one whole GPU; the rest asks several."""

    amounts: float
    percentages: float
    whole: float


MIXES = {"mixed": Mix(0.5, 0.15, 0.17), "small shares": Mix(0.7, 0.15, 0.1), "training": Mix(0.25, 0.1, 0.25)}


def nodes(scaling: float) -> list[SimNode]:
    """The cluster, with memory that may be granted scaled."""
    return [
        SimNode(
            name=f"{key}-{number}".lower(),
            cpu=cpu,
            memory_mib=memory,
            gpus=tuple(_gpu(f"{key}-{number}-{index}", key, index, scaling) for index in range(gpus)),
        )
        for key, gpus, count, cpu, memory in HARDWARE
        for number in range(count)
    ]


def pods(seed: int, count: int, mix: Mix, busy_gpus: float) -> list[SimPod]:
    """Pods that come so fast that together they would keep `busy_gpus` GPUs busy."""
    random = np.random.default_rng(seed)
    asked = [_pod(random, mix) for _ in range(count)]
    lives = np.exp(random.normal(0, 1, count))
    mean = float(np.mean([life * gpus(request) for life, (request, _, _) in zip(lives, asked, strict=True)]))
    came = np.cumsum(random.exponential(mean / busy_gpus, count))
    return [
        SimPod(
            name=f"p{number}",
            cpu=cpu,
            memory_mib=memory,
            request=request,
            created=float(came[number]),
            deleted=float(came[number] + lives[number]),
        )
        for number, (request, cpu, memory) in enumerate(asked)
    ]


def gpus(request: PodRequest) -> float:
    """What a request comes to in GPUs: of each the larger of its parts of memory and time, on a card of 32 GiB."""
    [one] = request.containers
    return one.count * max(one.memory_on(32_768) / 32_768, one.cores / 100)


def _gpu(uuid: str, key: str, index: int, scaling: float) -> Gpu:
    kind = card(key)
    capacity = int(kind.memory_mib * scaling)
    return Gpu(uuid=uuid, index=index, model=kind.name, memory_mib=kind.memory_mib, capacity_mib=capacity)


def _pod(random: np.random.Generator, mix: Mix) -> tuple[PodRequest, int, int]:
    kind, cpu = random.random(), int(random.choice((1000, 2000, 4000, 8000)))
    selector = GpuSelector(types=("A100",)) if random.random() < 0.1 else GpuSelector()
    whole = {"container": "main", "memory_percent": 100, "cores": 100, "exclusive": True}
    if kind < mix.amounts:
        memory = int(random.choice(_MIB, p=_MIB_OFTEN))
        cores = int(random.choice((0, 10, 20, 30, 50), p=(0.35, 0.15, 0.2, 0.2, 0.1)))
        one = ContainerRequest(container="main", count=1, memory_mib=memory, cores=cores)
    elif kind < mix.amounts + mix.percentages:
        percent, cores = int(random.choice((25, 50))), int(random.choice((0, 25, 50)))
        one = ContainerRequest(container="main", count=1, memory_percent=percent, cores=cores)
    elif kind < mix.amounts + mix.percentages + mix.whole:
        one, cpu = ContainerRequest(count=1, **whole), 2 * cpu  # type: ignore[arg-type]
    else:
        count = int(random.choice((2, 4, 8), p=(0.5, 0.3, 0.2)))
        cpu = cpu * count // 2 + 2000
        if random.random() < 0.3:
            one = ContainerRequest(container="main", count=count, memory_mib=16000, cores=50)
        else:
            one = ContainerRequest(count=count, **whole)  # type: ignore[arg-type]
    request = PodRequest(dialect="hami", containers=(one,), selector=selector)
    return request, cpu, cpu * int(random.choice((2, 4, 8)))
