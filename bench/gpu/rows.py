"""Rows of the test: what is tried, how, and what must come out. Plain data."""

from typing import Literal

from msgspec import Struct, structs

Value = float | str | bool | None


class Fact(Struct, frozen=True):
    """How one fact that a probe prints is judged. Facts without such a rule have to be the same on both sides."""

    name: str
    unit: str = ""
    within: float | None = 0.0
    """The fraction by which both sides may differ; None: they are not compared."""
    least: float | None = None
    most: float | None = None
    """What the card itself has to keep."""
    computed: bool = False
    """Whether a kernel has to compute it. Those of simulated GPUs compute nothing."""


class Row(Struct, frozen=True, kw_only=True):
    """One thing that is tried.

    `way` is how its probe runs: without limits (free), under the limits of `cores` and `memory_mib` (held), or both in
    turns, after which each fact has its native figure, and what the facade added (both) or which part of the native
    speed is left (slowed). More than one share in `cores` starts as many processes at once, each in a container of its
    own if there are limits.
    """

    part: str
    name: str
    probe: str
    arguments: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    way: Literal["free", "held", "both", "slowed"] = "free"
    cores: tuple[int, ...] = (0,)
    memory_mib: int = 0
    """0: all of the GPU's."""
    memory_percent: float = 0.0
    """In place of `memory_mib`: this part of the GPU's memory."""
    physical_percent: float = 0.0
    """Which part of the GPU's memory the process may take without it being managed; 0: all of its own."""
    needed_mib: int = 0
    """What it needs. It is not tested where a part of the GPU's memory is less."""
    pairs: int = 3
    """How many pairs of programs are asked in turns (both). Programs differ in speed from start to start."""
    native: str = ""
    """The row (both) whose native time is 100 % of the speed of programs at once."""
    simulated_probe: str = ""
    """The probe that stands for it on a simulated GPU, and needs no module."""
    needs: str = ""
    """The Python module without which it is not tested."""
    nested: bool = False
    """In a PID namespace of its own."""
    mps: bool = False
    """As a client of MPS; `cores` is then the part of the processors. Without the facade (free) and with it, its
    environment has these limits as that of a container has; only the native program of `slowed` has none."""
    limit_s: float = 40.0
    after: str = ""
    """The row without limits. Where that left more than a tenth of the GPU unused, too little for one program is no
    failure here; programs at once have to get their part of what two get together without limits."""

    def fact(self, name: str) -> Fact:
        """The rule for a fact, by its name."""
        for fact in self.facts:
            if fact.name == name:
                return fact
        return Fact(name)


RATE = "{rate}"
"""Stands for how many steps of work the card does in a microsecond, which is measured first."""
KERNELS_MS = (0.1, 10.0)
CAPS = (10, 30, 50, 70)
PAIRS = ((30, 60), (30, 70), (50, 50))
SECONDS = "3"


def _reported(unit: str, *names: str) -> tuple[Fact, ...]:
    return tuple(Fact(name, unit, within=None) for name in names)


def _answers() -> tuple[Row, ...]:
    """What simgpu answers as its authors believe that NVIDIA's driver does."""
    return (
        Row(part="answers", name="cuGetProcAddress", probe="lookup"),
        Row(part="answers", name="error codes", probe="errors"),
        Row(part="answers", name="attributes", probe="attributes"),
        Row(
            part="answers",
            name="context",
            probe="context",
            facts=(
                *(Fact(name, "MiB", within=0.25) for name in ("first context", "second context", "by its process")),
                Fact("1 byte of memory", "MiB"),
                *_reported("MiB", "left after release"),
                *_reported("ms", "to make the first", "to make the second"),
            ),
        ),
        Row(
            part="answers",
            name="events",
            probe="events",
            arguments=(RATE,),
            facts=(
                Fact("between records around 20 ms of work", "ms", within=0.05),
                *_reported("ms", "between records without work", "until an idle stream's record is done"),
            ),
        ),
        Row(part="answers", name="processes by NVML", probe="processes"),
        Row(part="answers", name="processes by NVML in a PID namespace", probe="processes", nested=True),
        Row(
            part="answers",
            name="time slices",
            probe="slices",
            arguments=(RATE,),
            facts=(
                Fact("pause for the other process", "ms", within=0.5),
                *_reported("ms", "kernel alone", "longest pause"),
                *_reported("%", "share of the GPU's time"),
            ),
        ),
    )


def _shares() -> tuple[Row, ...]:
    """Caps alone and in pairs, which must neither pass their share nor miss much of it."""
    rows = []
    for ms in KERNELS_MS:
        work = (f"{ms:g}", SECONDS, RATE)
        free = Fact("share of the GPU's time", "%", within=None, most=102)
        name = f"no limit, kernels of {ms:g} ms"
        unlimited = Row(part="compute", name=name, probe="work", arguments=work, facts=(free,))
        rows.append(unlimited)
        held = structs.replace(unlimited, way="held", after=unlimited.name)
        for cores in CAPS:
            fact = Fact("share of the GPU's time", "%", within=None, least=cores - 2, most=cores + 2)
            name = f"{cores} %, kernels of {ms:g} ms"
            rows.append(structs.replace(held, name=name, facts=(fact,), cores=(cores,)))
        two = tuple(Fact(f"program {number}", "%", within=None, most=102) for number in (1, 2))
        free_pair = structs.replace(
            unlimited, name=f"no limits, two at once, kernels of {ms:g} ms", facts=two, cores=(0, 0)
        )
        rows.append(free_pair)
        for pair in PAIRS:
            facts = tuple(
                Fact(f"share of {cores} %, number {number}", "%", within=None, least=0.85 * cores, most=cores + 2)
                for number, cores in enumerate(pair, 1)
            )
            name = f"{pair[0]} % and {pair[1]} % at once, kernels of {ms:g} ms"
            rows.append(structs.replace(held, name=name, facts=facts, cores=pair, after=free_pair.name))
    return tuple(rows)


def _costs() -> tuple[Row, ...]:
    """What the facade costs where nothing is limited."""
    step = Fact("step, added", "%", within=None, most=2)
    launch = tuple(Fact(f"{name}, added us", "us", within=None) for name in ("launch", "launch and wait"))
    return (
        Row(part="cost", name="a step of training", probe="steps", arguments=(RATE,), facts=(step,), way="both"),
        Row(part="cost", name="an empty kernel", probe="launching", facts=launch, way="both"),
    )


ROWS = (*_answers(), *_shares(), *_costs())
