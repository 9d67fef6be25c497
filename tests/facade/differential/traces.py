"""What a program can notice: its operations replayed with and without the facade, and compared."""

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.building import compile_program
from tests.facade.differential.programs import Operation, Program, text_of

MODEL, DRIVER, CUDA = "V100-SXM2-32GB", "580.95.05", "13.0"
SOURCES = ("main", "clock", "operations")
FIGURES = re.compile(r"cuMemGetInfo|cuDeviceTotalMem|nvmlDeviceGet(MemoryInfo|BAR1|Attributes)|.*Processes|.*Process")
"""What says how much memory there is, which a limit changes."""
_HEADER = re.compile(r"(\S+) errno=(\d+) (.*) \|(.*)")
_WORD = re.compile(r"(\d+)\.(\d+)=([0-9a-f]+)")
_ADDRESSES = range(1 << 44, 1 << 48)
_MAKES = re.compile(
    r"Create|Alloc|Retain|Load|Reserve|Instantiate|Clone|Add|Open|Import|GetFunction|GetKernel|GetModule"
)
_OPAQUE = re.compile(r"cuIpcGet|cuMemPoolExport")
"""What is written has no meaning for a program."""
TIMEOUT_S = 60
REPETITIONS = 8
"""How often a difference has to repeat. The result of some programs depends on timing and changes from run to run."""


@dataclass(frozen=True)
class Seen:
    """What came of one operation. `held` is what the GPU holds after it, in MiB, by its own ledger."""

    result: str
    errno: int
    rest: str
    held: int

    def differs(self, other: "Seen") -> bool:
        """From the same with the facade. The driver sets errno where it likes; the facade may only leave it alone."""
        return (self.result, self.rest) != (other.result, other.rest) or other.errno not in {0, self.errno}


@dataclass(frozen=True)
class Trace:
    """What came of a program."""

    operations: tuple[Seen, ...]
    order: str


class _Names:
    """Names for addresses, which differ from run to run: by the operation that first showed them to a process."""

    def __init__(self) -> None:
        self._names: dict[int, dict[int, str]] = defaultdict(dict)

    def of(self, operation: Operation, place: int, word: int, value: int) -> str:
        if value not in _ADDRESSES:
            return f"{value:x}"
        names = self._names[operation.process]
        if value not in names or (word == 0 and place == 0 and _MAKES.search(operation.name)):
            names[value] = f"<{operation.number}.{place}.{word}>"
        return names[value]

    def fork(self, parent: int, child: int) -> None:
        """A child has the addresses of its parent."""
        self._names[child] = {**self._names[parent]}


def _seen(operation: Operation, line: str, held: str, names: _Names) -> Seen:
    found = _HEADER.fullmatch(line)
    amount = int(held.removeprefix(" held="))
    if operation.what == "fork":
        names.fork(operation.process, int(operation.name))
    if found is None:
        return Seen(line, 0, "", amount)
    words = [
        f"{place}.{word}={names.of(operation, int(place), int(word), int(value, 16))}"
        for place, word, value in _WORD.findall(found[4] if not _OPAQUE.match(operation.name) else "")
    ]
    return Seen(found[1], int(found[2]), f"{found[3]} | {' '.join(words)}", amount)


class Replayer:
    """Replays programs on machines that are all alike. `preload` is another facade, and `more` variables for it."""

    def __init__(
        self, folder: Path, limit_mib: int | None = None, preload: dict[str, Path] | None = None, **more: str
    ) -> None:
        sources = [f"native/tests/replay/{name}.c" for name in SOURCES]
        self._program = compile_program(folder, "replay", sources, "-Inative/tests", "-rdynamic")
        self._folder = folder
        spec = simgpu.GpuSpec(model=MODEL)
        machine = simgpu.Machine(gpus=(spec,), driver=DRIVER, cuda=CUDA, seed="differential", init_us=1000)
        simgpu.write(machine, folder / "new-machine")
        self._machine = (folder / "new-machine").read_bytes()
        self._whole_mib = simgpu.read(folder / "new-machine").gpus[0].memory_mib
        limit = DeviceLimit(uuid=place(machine)[0].uuid, memory_bytes=(limit_mib or self._whole_mib) << 20)
        self._limits = Limits(devices=(limit,))
        self.limit_mib = limit_mib
        self._bare = {"PATH": os.environ["PATH"], "SIMGPU_MACHINE": str(folder / "machine")}
        self._limited = environment(folder, simgpu.driver_folder(), self._bare)
        paths = [(preload or {}).get(Path(path).name, path) for path in self._limited["LD_PRELOAD"].split(":")]
        self._limited["LD_PRELOAD"] = ":".join(str(path) for path in paths)
        self._limited |= more
        write_container(folder, self._limits)
        self._account = (folder / "usage").read_bytes()

    def replay(self, program: Program, *, facade: bool) -> Trace:
        """On a new machine, and with a new account."""
        for name, content in (("machine", self._machine), ("usage", self._account)):
            (self._folder / name).unlink(missing_ok=True)
            (self._folder / name).write_bytes(content)
        variables = self._limited if facade else self._bare | {"LD_LIBRARY_PATH": str(simgpu.driver_folder())}
        done = subprocess.run(
            [self._program], env=variables, input=text_of(program), capture_output=True, text=True,
            timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        lines, names = done.stdout.splitlines(), _Names()
        pairs = zip(program, lines[0:-1:2], lines[1:-1:2], strict=True)
        return Trace(tuple(_seen(*each, names) for each in pairs), lines[-1])

    def difference(self, program: Program) -> str:
        """What a program notices of the facade first, or where the GPU held more than the limit. Empty if nothing.

        A difference that does not repeat each time, or that two runs without the facade ever have, is the machine's.
        """
        found = self._compare(program, facade=True)
        repeats = found and all(
            self._compare(program, facade=True) == found and not self._compare(program, facade=False)
            for _ in range(REPETITIONS)
        )
        return found if repeats else ""

    def _compare(self, program: Program, *, facade: bool) -> str:
        without, now = self.replay(program, facade=False), self.replay(program, facade=facade)
        over = [seen.held for seen in now.operations if facade and seen.held > (self.limit_mib or self._whole_mib)]
        return f"the GPU holds {over[0]} MiB" if over else next(self._differences(program, without, now), "")

    def _differences(self, program: Program, without: Trace, with_facade: Trace) -> Iterator[str]:
        for at, (operation, before, now) in enumerate(
            zip(program, without.operations, with_facade.operations, strict=True)
        ):
            if before.result in {"ended", "hung"} and operation.what == "call":
                return
            if now.result == "2" != before.result and (self.limit_mib is not None or before.result != "0"):
                return  # what is over the limit is refused before the driver looks at it
            if FIGURES.match(operation.name) and (self.limit_mib is not None or _frees_later(program[:at], operation)):
                before, now = replace(before, rest=""), replace(now, rest="")
            if before.differs(now):
                yield f"{operation}\n  without: {before}\n  with:    {now}"
        orders = [_order_by_process(program, trace.order) for trace in (without, with_facade)]
        if orders[0] != orders[1]:
            yield f"host functions without: {orders[0]}\n  with: {orders[1]}"


def _order_by_process(program: Program, order: str) -> dict[int, list[int]]:
    """Which operations' host functions ran in each process. The order among processes is the machine's."""
    found: dict[int, list[int]] = defaultdict(list)
    for number in map(int, order.split()[1:]):
        found[program[number].process].append(program[number].number)
    return dict(found)


def _frees_later(before: Program, operation: Operation) -> bool:
    """Whether memory was freed in the order of a stream by another process, or at all where NVML is asked.

    A process notices that such a free has happened in its next call of CUDA that allocates or asks for free memory.
    Until then NVML and other processes see less free memory.
    """
    anyone = operation.name.startswith("nvml")
    return any(
        each.name.startswith("cuMemFreeAsync") and (anyone or each.process != operation.process) for each in before
    )
