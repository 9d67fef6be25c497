"""Rows that run programs of others under limits: PyTorch, JAX, CuPy, Numba and cuda-core, where they are installed."""

from bench.gpu.probes.jax_memory import SETTINGS as JAX_SETTINGS
from bench.gpu.probes.torch_memory import SETTINGS
from bench.gpu.probes.torch_steps import SIZES
from bench.gpu.rows import Fact, Row

LIMIT_MIB = 4096
CAPS = (30, 60)


def _within(name: str, least: float, most: float, unit: str = "MiB") -> Fact:
    return Fact(name, unit, within=None, least=least, most=most)


def _computed(name: str, value: float) -> Fact:
    """What a kernel has to compute, which it does not do on a simulated GPU."""
    return Fact(name, within=None, least=value, most=value, computed=True)


def _true(name: str) -> Fact:
    return Fact(name, within=None, least=1)


def _reported(name: str) -> Fact:
    return Fact(name, within=None)


TOTAL = _within("total", LIMIT_MIB, LIMIT_MIB)


def _taken(name: str) -> Fact:
    """Nearly all that is free and never more. Allocators round and keep something for themselves."""
    return _within(name, 93, 100, "%")


def _arrays() -> tuple[Row, ...]:
    """Likewise for libraries of arrays. JAX keeps a part of the memory that it sees for itself."""
    refused, cupy_sum, jax_sum = _true("it is out of memory"), 2048, 256 * 256 * 256
    cupy = (TOTAL, _taken("taken of what was free"), refused, _computed("sum after the refusal", cupy_sum))
    of_jax = {"preallocated": (0.6, 0.75), "on demand": (0.7, 0.95), "as the platform": (0.7, 1.0)}
    return (
        *(
            Row(part="clients", name=f"CuPy, {kind}", probe="cupy_memory", arguments=(kind,), facts=cupy, way="held",
                memory_mib=LIMIT_MIB, needs="cupy", limit_s=60)
            for kind in ("its pool", "stream-ordered")
        ),
        *(
            Row(part="clients", name=f"JAX, {kind}", probe="jax_memory", arguments=(kind,), way="held",
                memory_mib=LIMIT_MIB, needs="jax", limit_s=90,
                facts=(_within("taken", *(part * LIMIT_MIB for part in of_jax[kind])), refused,
                       _computed("sum after the refusal", jax_sum), _reported("limit of JAX")))
            for kind in JAX_SETTINGS
        ),
    )  # fmt: skip


def _memory() -> tuple[Row, ...]:
    """Every allocator up to its limit, what is refused then, and that the program goes on."""
    torch = (
        TOTAL,
        _within("free at first", 0.8 * LIMIT_MIB, LIMIT_MIB),
        _within("total of the properties", LIMIT_MIB, LIMIT_MIB),
        _taken("taken of what was free"),
        _taken("taken once it was freed"),
        _true("the refusal names the limit"),
        _computed("sum after the refusal", 1024),
        _reported("refusal"),
    )
    rows = [
        Row(part="clients", name=f"PyTorch, {allocator}", probe="torch_memory", arguments=(allocator,), facts=torch,
            way="held", memory_mib=LIMIT_MIB, needs="torch", limit_s=60)
        for allocator in SETTINGS
    ]  # fmt: skip
    first, second = _reported("held by the first"), _taken("taken of what the first left")
    both = Row(part="clients", name="PyTorch, two processes", probe="torch_family", facts=(second, first), way="held",
               memory_mib=LIMIT_MIB, needs="torch", limit_s=60)  # fmt: skip
    numba = (
        TOTAL, _taken("taken of what was free"), _true("it is out of memory"),
        _computed("sum after the refusal", 2048),
    )  # fmt: skip
    core = (_taken("taken of what was free"), _true("it is out of memory"))
    return (
        *rows,
        both,
        Row(part="clients", name="Numba", probe="numba_memory", facts=numba, way="held", memory_mib=LIMIT_MIB,
            needs="numba.cuda", limit_s=60),
        *(
            Row(part="clients", name=f"cuda-core, {kind}", probe="core_memory", arguments=(kind,), facts=core,
                way="held", memory_mib=LIMIT_MIB, needs="cuda.core", limit_s=60)
            for kind in ("a pool", "virtual memory")
        ),
    )  # fmt: skip


def _work() -> tuple[Row, ...]:
    """Right results under limits, what the facade costs a step, and caps by the speed that is left."""
    held = {"way": "held", "memory_mib": LIMIT_MIB, "needs": "torch", "limit_s": 90.0}
    graph, kernel = (_computed(f"the result of the {what} is right", True) for what in ("graph", "kernel"))
    steps = tuple(_within(f"{name}, added", -100, 2, "%") for name in SIZES)
    rows = [
        Row(part="clients", name="PyTorch, a graph", probe="torch_graph", facts=(graph,), **held),
        Row(part="clients", name="PyTorch, torch.compile", probe="torch_compile", facts=(kernel,), **held),
        Row(part="clients", name="PyTorch, a step of training", probe="torch_steps", arguments=("40",), facts=steps,
            way="both", needs="torch"),
    ]  # fmt: skip
    for cores in CAPS:
        left = _within("a sum, part of the native speed", cores - 2, cores + 2, "%")
        rows.append(
            Row(part="clients", name=f"PyTorch, sums of tensors at {cores} %", probe="torch_sums", arguments=("3",),
                facts=(left, _reported("a sum, native us")), way="slowed", cores=(cores,), needs="torch")
        )  # fmt: skip
    return tuple(rows)


CLIENT_ROWS = (*_memory(), *_arrays(), *_work())
