"""Rows of clients of MPS: what NVIDIA's daemon does with a grant's limits, and what the facade adds to it."""

from typing import Literal

from msgspec import structs

from bench.gpu.client_rows import CLIENT_ROWS
from bench.gpu.rows import RATE, Fact, Row

PART = "mps"
MEMORY_MIB, CORES = 4096, 30
MORE_CORES = 60
REPORTED = ("total", "free at first", "a context, of the process", "a context, of the GPU")
PYTORCH = ("PyTorch, native", "PyTorch, two processes")


def _processors(cores: int, name: str, what: str = "kept") -> Row:
    """The speed of a kernel that fills the GPU. A part is a whole number of multiprocessors, so it may be more."""
    left = Fact("a kernel, part of the native speed", "%", within=0.2, least=cores - 2.5, most=cores + 2.5)
    native = Fact("a kernel, native us", "us", within=None)
    return Row(part=PART, name=name, probe="processors", arguments=(what, RATE), facts=(left, native), way="slowed",
               cores=(cores,), mps=True)  # fmt: skip


def _client(name: str, way: Literal["free", "held"], *facts: Fact) -> Row:
    seen = (Fact("multiprocessors"), Fact("error at the limit"), Fact("it is listed by its PID"))
    reported = (Fact(each, "MiB", within=None) for each in REPORTED)
    return Row(part=PART, name=name, probe="client", facts=(TAKEN, *facts, *seen, *reported), way=way, cores=(CORES,),
               memory_mib=MEMORY_MIB, mps=True)  # fmt: skip


TAKEN = Fact("taken", "MiB", within=0.05, least=0.8 * MEMORY_MIB, most=MEMORY_MIB)
"""Of its own limit, which the context is part of."""
TOTAL = Fact("total", "MiB", within=None, least=MEMORY_MIB, most=MEMORY_MIB)
MPS_ROWS = (
    _client("a client by NVIDIA's variables alone", "free"),
    _client("a client with the facade", "held", TOTAL),
    *(_processors(cores, f"{cores} % of the processors") for cores in (CORES, MORE_CORES)),
    _processors(CORES, f"{CORES} % of the processors, the variable removed", "removed"),
    _processors(CORES, f"{CORES} % of the processors, the variable raised", "raised"),
    *(
        structs.replace(row, part=PART, name=f"{row.name}, as a client", cores=(CORES,), mps=True)
        for row in CLIENT_ROWS
        if row.name in PYTORCH
    ),
)
