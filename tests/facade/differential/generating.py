"""Programs from a seed: phrases that programs have, mixed with calls of any function."""

from collections.abc import Callable
from random import Random

from tests.facade.differential.arguments import MIB, Arguments
from tests.facade.differential.functions import Function, functions
from tests.facade.differential.programs import (
    FIRST_PROCESSES,
    MOST,
    MOST_PROCESSES,
    THREADS,
    Argument,
    HostFunction,
    Operation,
    Own,
    Place,
    PlaceOf,
    Structure,
    Word,
)  # fmt: skip

_OFTEN = (
    "cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemGetInfo_v2", "cuLaunchKernel",
    "cuStreamSynchronize", "cuCtxSynchronize", "cuMemCreate", "cuMemRelease", "cuGraphLaunch", "cuMemsetD8Async",
    "cuStreamQuery", "cuLaunchHostFunc", "cuGraphInstantiateWithFlags", "cuMemAllocManaged", "cuEventRecord",
    "cuMemPoolCreate", "cuMemAllocFromPoolAsync", "cuGraphAddMemAllocNode", "cuMemAddressReserve", "cuMemMap",
)  # fmt: skip
"""Calls in which the facade takes part, and their neighbors."""
_LENGTHS = (6, 12, 20)
_KERNEL_NS = (3_000_000_000, 200_000_000, 1_000_000)


class Generator:
    """Makes the operations of one program."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._known = {process: Arguments(self._random) for process in range(MOST_PROCESSES)}
        self._operations: list[Operation] = []
        self._processes = [0]
        self._next_process = FIRST_PROCESSES

    def program(self) -> list[Operation]:
        """All of it. The last operations wait for what is under way."""
        self._begin(0, whole=self._random.random() < 0.9)
        phrases: tuple[Callable[[], None], ...] = (
            self._capture, self._share, self._free_later, self._fork, self._break, self._any, self._any, self._any,
        )  # fmt: skip
        for _ in range(self._random.choice(_LENGTHS)):
            if len(self._operations) < MOST - 24:
                self._random.choice(phrases)()
        for process in self._processes:
            self._call("cuCtxSynchronize", process=process)
        return self._operations

    def _add(self, what: str, name: str = "", *arguments: Argument, process: int = 0, thread: int = 0) -> int:
        number = len(self._operations)
        self._operations.append(Operation(number, what, name, arguments, process, thread))
        return number

    def _call(self, name: str, *arguments: Argument, process: int = 0, thread: int = 0) -> int:
        """These arguments, or some that fit."""
        function: Function = functions()[name]
        known = self._known[process]
        chosen = arguments or known.of(function)
        number = self._add("call", name, *chosen, process=process, thread=thread)
        known.made(number, function)
        return number

    def _begin(self, process: int, *, whole: bool) -> None:
        call, one = self._call, self._random.random
        if one() < 0.3:
            self._add("meanwhile", "ADDED", f"in{process}", process=process)
        if one() < 0.1:
            self._add("interrupt", process=process)
        call("cuInit", 0, process=process)
        if not whole:
            return
        context = call("cuDevicePrimaryCtxRetain", Place(), 0, process=process)
        call("cuCtxSetCurrent", Word(context), process=process)
        module = call("cuModuleLoadData", Place(), "simgpu", process=process)
        call("cuModuleGetFunction", Place(), Word(module), "spin", process=process)
        for flags in (0, 1, 1):
            call("cuStreamCreate", Place(), flags, process=process)
        call("cuEventCreate", Place(), 0, process=process)
        if one() < 0.5:
            call("nvmlInit_v2", process=process)
            call("nvmlDeviceGetHandleByIndex_v2", 0, Place(), process=process)

    def _any(self, process: int | None = None) -> None:
        if process is None:
            process = self._random.choice(self._processes)
        chance, names = self._random.random(), sorted(functions())
        thread = self._random.randrange(1, THREADS) if self._random.random() < 0.2 else 0
        if chance < 0.03:
            self._add(self._random.choice(("set", "meanwhile")), "CHANGED", str(len(self._operations)), process=process)
        elif chance < 0.05:
            self._add("interrupt", process=process)
        elif thread and chance < 0.4:
            self._call("cuCtxSetCurrent", self._known[process].handle("CUcontext"), process=process, thread=thread)
        else:
            name = self._random.choice(_OFTEN if chance < 0.5 else names)
            self._call(name, process=process, thread=thread)

    def _capture(self) -> None:
        """Calls of any kind while a stream captures."""
        process = self._random.choice(self._processes)
        stream = self._known[process].handle("CUstream")
        if self._random.random() < 0.5:  # a pool from which something was freed
            taken = self._call("cuMemAllocAsync", Place(), 3 * MIB, 0, process=process)
            self._call("cuMemFreeAsync", Word(taken), 0, process=process)
        mode = self._random.choice((0, 1, 2))
        self._call("cuStreamBeginCapture_v2", stream, mode, process=process)
        for _ in range(self._random.choice((1, 2, 4))):
            self._any(process)
        graph = self._call("cuStreamEndCapture", stream, Place(), process=process)
        self._call("cuGraphGetNodes", Word(graph), Place(()), Place((8,)), process=process)
        if self._random.random() < 0.6:
            made = self._call("cuGraphInstantiateWithFlags", Place(), Word(graph), 0, process=process)
            self._call("cuGraphLaunch", Word(made), stream, process=process)

    def _share(self) -> None:
        """Memory of the first process in the second one.

        Not of up to 1 MiB: the simulated driver frees it with its owner, the facade counts it until the last user ends.
        """
        if 1 not in self._processes:
            self._processes.append(1)
            self._begin(1, whole=True)
        size = self._random.choice((40 * MIB, 300 * MIB))
        taken = self._call("cuMemAlloc_v2", Place(), size)
        more = self._random.choice((0, 0, 512, 4 * MIB))
        handle = self._call("cuIpcGetMemHandle", Place(), Word(taken, more=more))
        opened = self._call("cuIpcOpenMemHandle_v2", Place(), PlaceOf(handle), 1, process=1)
        self._call("cuMemGetInfo_v2", Place(), Place(), process=self._random.choice((0, 1)))
        ends: list[Callable[[], object]] = [
            lambda: self._call("cuMemFree_v2", Word(taken)),
            lambda: self._call("cuIpcCloseMemHandle", Word(opened), process=1),
            lambda: self._call("cuMemGetInfo_v2", Place(), Place()),
        ]
        self._random.shuffle(ends)
        for end in ends[: self._random.choice((0, 2, 3))]:
            end()

    def _free_later(self) -> None:
        """A free behind a kernel, and more memory before it has happened."""
        process = self._random.choice(self._processes)
        known = self._known[process]
        stream, size = known.handle("CUstream"), self._random.choice((MIB, 300 * MIB, 1500 * MIB))
        taken = self._call("cuMemAlloc_v2", Place(), size, process=process)
        parameters = Structure((Structure((self._random.choice(_KERNEL_NS),)),))
        self._call(
            "cuLaunchKernel", known.handle("CUfunction"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, 0, process=process
        )
        if self._random.random() < 0.3:
            self._call("cuLaunchHostFunc", stream, HostFunction(), Own(), process=process)
        self._call("cuMemFreeAsync", Word(taken), stream, process=process)
        self._call("cuMemAlloc_v2", Place(), size, process=process)

    def _fork(self) -> None:
        """A child of a process that may use the driver."""
        if self._next_process >= MOST_PROCESSES or self._random.random() < 0.6:
            return
        parent, child = self._random.choice(self._processes), self._next_process
        self._next_process += 1
        self._add("fork", str(child), process=parent)
        self._known[child].inherit(self._known[parent])
        for _ in range(self._random.choice((1, 3))):
            self._any(child)
        if self._random.random() < 0.5:
            self._begin(child, whole=self._random.random() < 0.5)
        self._add(self._random.choice(("exit", "kill")), process=child)

    def _break(self) -> None:
        """A context that a kernel breaks, and perhaps a new one."""
        if self._random.random() < 0.7:
            return
        process = self._random.choice(self._processes)
        known = self._known[process]
        kernel = self._call("cuModuleGetFunction", Place(), known.handle("CUmodule"), "fault", process=process)
        self._call(
            "cuLaunchKernel", Word(kernel), 1, 1, 1, 1, 1, 1, 0, 0, Structure((Structure((0,)),)), 0, process=process
        )
        for _ in range(self._random.choice((1, 3))):
            self._any(process)
        if self._random.random() < 0.5:
            self._call("cuDevicePrimaryCtxReset_v2", 0, process=process)
            self._begin(process, whole=True)
