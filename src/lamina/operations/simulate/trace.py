"""Traces in the format of Alibaba's cluster-trace-gpu-v2023: a list of nodes and a list of pods, as CSV.

    sn,cpu_milli,memory_mib,gpu,model
    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,...,creation_time,deletion_time,...

A share is given in thousandths of a GPU, and is the same part of its memory and of its compute. `gpu_spec` lists
models, joined by `|`. There are no memory sizes, so a card that is not known by name has 32 GiB.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from lamina.core.cards import CARDS
from lamina.core.gpus import Gpu
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.errors import BadInput
from lamina.ports.user_files import read_text
from lamina.simulation.workload import SimNode, SimPod

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_UNKNOWN_MIB = 32768
_SLOTS = 100


class NodeOfTrace(NamedTuple):
    """A node. CPU is in thousandths of a core, memory in MiB."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class PodOfTrace(NamedTuple):
    """A pod. Times are in seconds of the trace; `deleted` is None for a pod that does not end."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    """Models that it accepts; empty for any."""
    created: float
    deleted: float | None


def node_rows(path: Path) -> Iterator[NodeOfTrace]:
    """The rows of a list of nodes, in order. Raises BadInput."""
    for row in _rows(path, _NODE_COLUMNS):
        cpu, memory, gpus = (_number(row, column) for column in ("cpu_milli", "memory_mib", "gpu"))
        yield NodeOfTrace(row["sn"], cpu, memory, gpus, row["model"])


def pod_rows(path: Path) -> Iterator[PodOfTrace]:
    """The rows of a list of pods, in order. Raises BadInput."""
    for row in _rows(path, _POD_COLUMNS):
        cpu, memory, gpus, share = (_number(row, column) for column in _POD_COLUMNS[1:])
        models = tuple(model for model in (row.get("gpu_spec") or "").split("|") if model)
        created, deleted = _seconds(row, "creation_time") or 0.0, _seconds(row, "deletion_time")
        yield PodOfTrace(row["name"], cpu, memory, gpus, share, models, created, deleted)


def _rows(path: Path, required: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    reader = csv.DictReader(StringIO(read_text(path), newline=""), restval="")
    try:
        missing = [name for name in required if name not in (reader.fieldnames or ())]
        if missing:
            raise BadInput(f"{path} has no column {missing[0]}; it must have {', '.join(required)}")
        yield from reader
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num + 1}: {error}") from error


def _number(row: Mapping[str, str], column: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdigit()):
        raise BadInput(f"row {next(iter(row.values()))}: {column} must be an integer from 0, got {text!r}")
    return int(text)


def _seconds(row: Mapping[str, str], column: str) -> float | None:
    """A moment of the trace; None where the row has none."""
    text = row.get(column) or ""
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadInput(f"row {next(iter(row.values()))}: {column} must be a number of seconds, got {text!r}")
    return seconds


def nodes(path: Path) -> list[SimNode]:
    """The nodes of the list. Raises BadInput."""
    return [_node(row) for row in node_rows(path)]


def pods(path: Path) -> list[SimPod]:
    """The pods of the list, in its order. Raises BadInput."""
    return [_pod(row) for row in pod_rows(path)]


def _node(row: NodeOfTrace) -> SimNode:
    card = CARDS.get(row.model)
    memory = card.memory_mib if card else _UNKNOWN_MIB
    gpus = tuple(
        Gpu(uuid=f"{row.name}-{i}", index=i, model=row.model, memory_mib=memory, capacity_mib=memory, slots=_SLOTS)
        for i in range(row.gpus)
    )
    return SimNode(name=row.name, cpu=row.cpu_milli, memory_mib=row.memory_mib, gpus=gpus)


def _pod(row: PodOfTrace) -> SimPod:
    request = None
    if row.gpus:
        percent = min(100, max(1, -(-row.gpu_milli // 10)))
        container = ContainerRequest(
            container="main", count=row.gpus, memory_percent=percent, cores=percent, exclusive=percent == 100
        )
        request = PodRequest(dialect="trace", containers=(container,), selector=GpuSelector(types=row.models))
    return SimPod(
        name=row.name,
        cpu=row.cpu_milli,
        memory_mib=row.memory_mib,
        request=request,
        created=row.created,
        deleted=row.deleted,
    )
