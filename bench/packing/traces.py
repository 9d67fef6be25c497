"""Node and pod lists in the format of the Alibaba openb trace (Weng et al., USENIX ATC'23), as arrays and requests."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lamina.operations.simulate.trace import PodOfTrace, node_rows, pod_rows
from lamina.placement.packing.cluster import REFUSED, Ask, Cluster

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
TINY = Path(__file__).with_name("tiny")
"""Lists of a few nodes and pods, to try a benchmark out."""
NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_{}.csv"
GPU = 1000
"""The trace counts a GPU in thousandths, and has one dimension: memory and compute are taken to be the same part."""

MANY_SLOTS = 1000
"""The trace limits no GPU's number of containers."""


class NoTrace(Exception):
    """A list is not where it was looked for; the message is for people."""


def missing() -> str:
    """Why there are no lists in TRACES; empty where there are."""
    there = (TRACES / NODES).exists()
    return "" if there else f"there is no {NODES} in {TRACES}: --traces names the folder of the openb lists"


@dataclass(frozen=True)
class Nodes:
    """Node rows in the file's order."""

    cpu: np.ndarray
    memory: np.ndarray
    gpus: np.ndarray
    model: np.ndarray
    models: tuple[str, ...]
    memory_of_model: tuple[int, ...] = ()
    """What a GPU of each model has; in the lists all have GPU."""

    def first(self, count: int) -> "Nodes":
        """The nodes of the first rows."""
        columns = {name: getattr(self, name)[:count] for name in ("cpu", "memory", "gpus", "model")}
        return replace(self, **columns)

    def cluster(self, order: np.ndarray) -> Cluster:
        """The nodes, all idle, in this order of preference."""
        most = int(self.gpus.max())
        there = np.arange(most) < self.gpus[order][:, None]
        full = np.full(len(self.models), GPU, np.int32)
        full_memory = np.array(self.memory_of_model or full, np.int32)
        return Cluster(
            cpu=self.cpu[order].copy(),
            memory=self.memory[order].copy(),
            kind=np.where(there, self.model[order][:, None], -1).astype(np.int32),
            gpu_memory=np.where(there, full_memory[self.model[order]][:, None], 0).astype(np.int32),
            gpu_cores=np.where(there, GPU, 0).astype(np.int32),
            slots=np.where(there, MANY_SLOTS, 0).astype(np.int32),
            full_memory=full_memory,
            full_cores=full,
        )

    def part(self, of: int, random: np.random.Generator) -> "Nodes":
        """One node in `of`, with about the same parts of each shape."""
        alike = np.lexsort((random.random(len(self.cpu)), self.cpu, self.gpus, self.model))
        some = alike[int(random.integers(of)) :: of]
        return replace(self, cpu=self.cpu[some], memory=self.memory[some], gpus=self.gpus[some], model=self.model[some])


@dataclass(frozen=True)
class Pod:
    """One row of a pod list. `asked` is the whole demand in thousandths of a GPU."""

    ask: Ask
    asked: int
    created: int = 0
    deleted: int = 0


def read_nodes(folder: Path) -> Nodes:
    rows = list(node_rows(_present(folder / NODES)))
    models = tuple(sorted({row.model for row in rows}))
    return Nodes(
        cpu=np.array([row.cpu_milli for row in rows]),
        memory=np.array([row.memory_mib for row in rows]),
        gpus=np.array([row.gpus for row in rows]),
        model=np.array([models.index(row.model) for row in rows]),
        models=models,
    )


def read_pods(folder: Path, name: str, models: tuple[str, ...]) -> list[Pod]:
    rows = pod_rows(_present(folder / PODS.format(name)))
    return [_pod(row, models) for row in sorted(rows, key=lambda row: row.name)]


def names(folder: Path) -> list[str]:
    """The pod lists that lie in the folder."""
    head, tail = PODS.split("{}")
    return sorted(path.name[len(head) : -len(tail)] for path in folder.glob(PODS.format("*")))


def _pod(row: PodOfTrace, models: tuple[str, ...]) -> Pod:
    milli = row.gpu_milli if row.gpus == 1 else GPU
    accepted = row.models or models
    memory = tuple(milli if model in accepted else REFUSED for model in models) if row.gpus else (0,) * len(models)
    ask = Ask(row.cpu_milli, row.memory_mib, row.gpus, memory, milli if row.gpus else 0)
    return Pod(ask, row.gpus * milli, int(row.created), int(row.deleted or 0))


def _present(path: Path) -> Path:
    if not path.is_file():
        raise NoTrace(f"there is no {path.name} in {path.parent}; set --traces to the folder of the openb lists")
    return path


def capacity(nodes: Nodes) -> int:
    """All GPUs, in thousandths."""
    return int(nodes.gpus.sum()) * GPU


def demand(pods: Iterable[Pod]) -> int:
    return sum(pod.asked for pod in pods)
