"""Traces in the format of Alibaba's cluster-trace-gpu-v2023: one list of nodes, one of pods, as CSV.

    sn,cpu_milli,memory_mib,gpu,model
    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,...,creation_time,deletion_time,...

A share is written in thousandths of a GPU; here it is that part of the memory and of the time. `gpu_spec` lists models,
joined by `|`. The trace says nothing of memory sizes, so cards that are not known by name have 32 GiB.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from lamina.errors import BadInput
from lamina.model.cards import CARDS
from lamina.model.gpus import Gpu
from lamina.model.requests import ContainerRequest, PodRequest, Wishes
from lamina.simulate.workload import SimNode, SimPod

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_UNKNOWN_MIB = 32768
_SLOTS = 100


def nodes(path: Path) -> list[SimNode]:
    """The nodes of the list. Raises BadInput."""
    return [_node(row) for row in _rows(path, _NODE_COLUMNS)]


def pods(path: Path) -> list[SimPod]:
    """The pods of the list, in its order. Raises BadInput."""
    return [_pod(row) for row in _rows(path, _POD_COLUMNS)]


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise BadInput(f"{path} has no column {missing[0]}; needed are {', '.join(needed)}")
        for number, row in enumerate(reader, start=2):
            try:
                yield row
            except ValueError as error:
                raise BadInput(f"{path}, line {number}: {error}") from error


def _node(row: Mapping[str, str]) -> SimNode:
    name, model = row["sn"], row["model"]
    card = CARDS.get(model)
    memory = card.memory_mib if card else _UNKNOWN_MIB
    gpus = tuple(
        Gpu(uuid=f"{name}-{i}", index=i, model=model, memory_mib=memory, capacity_mib=memory, slots=_SLOTS)
        for i in range(_number(row, "gpu"))
    )
    return SimNode(name=name, cpu=_number(row, "cpu_milli"), memory_mib=_number(row, "memory_mib"), gpus=gpus)


def _pod(row: Mapping[str, str]) -> SimPod:
    count, thousandths = _number(row, "num_gpu"), _number(row, "gpu_milli")
    request = None
    if count:
        percent = min(100, max(1, -(-thousandths // 10)))
        container = ContainerRequest(
            container="main", count=count, memory_percent=percent, cores=percent, exclusive=percent == 100
        )
        types = tuple(part for part in (row.get("gpu_spec") or "").split("|") if part)
        request = PodRequest(dialect="trace", containers=(container,), wishes=Wishes(types=types))
    end = row.get("deletion_time") or ""
    return SimPod(
        name=row["name"],
        cpu=_number(row, "cpu_milli"),
        memory_mib=_number(row, "memory_mib"),
        request=request,
        created=float(row.get("creation_time") or 0),
        deleted=float(end) if end else None,
    )


def _number(row: Mapping[str, str], column: str) -> int:
    written = row[column]
    if not written.isdigit():
        raise BadInput(f"the row {next(iter(row.values()))}: {column} is {written!r}; allowed is a whole number from 0")
    return int(written)
