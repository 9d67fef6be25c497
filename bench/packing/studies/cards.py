"""Unlike cards: memory is asked in MiB, so that what takes half of a 16 GiB card takes a quarter of one of 32 GiB.

The list hides two of its models, which are taken to have 32 and 48 GiB. A share asks its part of a 16 GiB card in
memory and half that part in compute; pods with whole GPUs take whatever card there is.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table

from bench.measures import Report
from bench.packing.studies.study import arrivals_only
from bench.packing.traces import GPU, Nodes, Pod

MIB = {"A10": 23_028, "G2": 32_768, "G3": 49_152, "P100": 16_384, "T4": 15_360, "V100M16": 16_384, "V100M32": 32_768}
ASKED_OF = 16_384


def in_mib(pods: Sequence[Pod], nodes: Nodes) -> list[Pod]:
    """The pods with memory in MiB. A share counts as what it takes of the mean card, in both dimensions."""
    memory = tuple(MIB[model] for model in nodes.models)
    mean = sum(memory[model] * gpus for model, gpus in zip(nodes.model, nodes.gpus, strict=True)) / nodes.gpus.sum()
    made = []
    for pod in pods:
        if pod.ask.gpus == 1 and pod.ask.gpu_cores < GPU:
            wanted, cores = pod.ask.gpu_cores * ASKED_OF // GPU, pod.ask.gpu_cores // 2
            ask = pod.ask._replace(gpu_memory=(wanted,) * len(memory), gpu_cores=cores)
            made.append(Pod(ask, int((GPU * wanted / mean + cores) / 2)))
        elif pod.ask.gpus:
            made.append(replace(pod, ask=pod.ask._replace(gpu_memory=memory)))
        else:
            made.append(pod)
    return made


def run(report: Report, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """Policies on the default list with unlike cards."""
    unlike = replace(nodes, memory_of_model=tuple(MIB[model] for model in nodes.models))
    return arrivals_only(report, "cards", "unlike cards", unlike, in_mib(pods, nodes), seeds)
