"""One process tree under a limit on this machine, without Kubernetes."""

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from msgspec import structs

from lamina.core.grants import ComputePolicy
from lamina.core.quantities import MIB, parse_gpu_memory
from lamina.enforcement import run_reaper
from lamina.enforcement.environment import environment
from lamina.enforcement.files import write_container
from lamina.enforcement.limits import DeviceLimit, Limits
from lamina.enforcement.run_machine import VISIBLE, RunMachine, find_machine
from lamina.enforcement.runs import RunRecord, exceeded, make_folder, own_folders, recorded, runs
from lamina.errors import BadInput

_FORWARDED = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
)
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
_TICK_S, _LOOK_S, _SECOND_LOOK_S = 0.01, 0.5, 0.05
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_FROM_KERNEL = 0x80  # si_code of a signal that no process sent: the terminal's, which reaches the whole group


class ContainerDevice(Protocol):
    """Gives the limits of a run to the containers that the command starts, and not to the command."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def spec(self) -> Path:
        """The file that containers get the limits by. It names the run's folder, and is removed with it."""
        ...

    def write(self, folder: Path, driver: Path, gpu: str) -> None:
        """Make the file, for the limits in `folder` and the GPU with this UUID. Raises LaminaError."""
        ...


def run(
    command: Sequence[str],
    *,
    memory: str,
    gpu: str = "",
    simulate: str | None = None,
    cores: int = 0,
    policy: str = "cap",
    device: ContainerDevice | None = None,
) -> int:
    """Runs the command and waits for it; its processes together get no more of one GPU than `memory`, and than `cores`
    percent of its time where that is not 0; `policy` is "cap", or "weight" when they may have what others leave.
    Where the limits of all runs exceed the GPU, a warning goes to standard error.

    `simulate` names a GPU model to use instead of the machine's driver. With `device`, the limits are those of the
    containers that have it, all together. Returns the command's exit code, or 128 and the
    signal's number if one ended it. Raises BadInput for wrong arguments and Outside when there is no driver; then
    nothing was started.
    """
    if not command:
        raise BadInput("there is no command to run; write it after --")
    part = parse_gpu_memory(memory, where="--memory")
    if not 0 <= cores <= 100:
        raise BadInput(f"--cores must be an integer from 0 to 100, got {cores}")
    if policy not in ("cap", "weight"):
        raise BadInput(f"--policy must be cap or weight, got {policy!r}")
    if shutil.which(command[0]) is None:
        raise BadInput(f"there is no program {command[0]!r}")
    with _folder() as (folder, blocked):
        machine = find_machine(folder, gpu, simulate, own_folders)
        chosen = machine.gpu
        mib = part.of(chosen.memory_mib, where=f"--memory {memory}")
        if mib > chosen.memory_mib:
            raise BadInput(f"--memory {memory} is more than GPU {chosen.index} has, {chosen.memory_mib} MiB")
        limit = DeviceLimit(
            uuid=chosen.uuid,
            memory_bytes=mib * MIB,
            cores_percent=cores,
            compute_policy=ComputePolicy(policy) if cores else ComputePolicy.NONE,
        )
        write_container(folder, Limits(devices=(limit,)))
        with (
            _guarded(folder, () if device is None else (str(device.spec),)),
            recorded(folder, _record(command, machine, device)),
        ):
            if excess := exceeded(chosen, runs()):
                print(f"Warning: {excess}", file=sys.stderr, flush=True)
            variables = machine.variables
            if device is None:
                variables = environment(folder, machine.driver, variables)
                variables.pop(VISIBLE, None)  # it has been heeded, and the program has one GPU, which is its device 0
            else:
                device.write(folder, machine.driver, chosen.uuid)
                variables["LAMINA_DIR"] = str(folder)
            return _held(command, variables, folder, machine.driver, blocked)


def _record(command: Sequence[str], machine: RunMachine, device: ContainerDevice | None) -> RunRecord:
    return RunRecord(
        pid=os.getpid(),
        command=shlex.join(command),
        started=time.time(),
        gpu=structs.replace(machine.gpu, used_mib=None, busy_percent=None),
        driver=str(machine.driver),
        device="" if device is None else device.name,
        simulated=dict(machine.simulated),
    )


@contextmanager
def _folder() -> Iterator[tuple[Path, Set[int]]]:
    """A private directory, removed afterwards, and the signals that are blocked for who runs this. Those to pass on
    wait until there is a process to receive them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED | {signal.SIGCHLD})
    folder = make_folder()
    try:
        yield folder, before
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _guarded(folder: Path, files: Sequence[str]) -> Iterator[None]:
    """Should this process be killed, the command and its children are too, and the folder goes. The files that name it
    go in any case."""
    reading, writing = os.pipe()
    silent = os.open(os.devnull, os.O_WRONLY)
    program = [sys.executable, "-I", "-S", run_reaper.__file__, str(folder.absolute()), *files]
    inside = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, silent, 1), (os.POSIX_SPAWN_DUP2, silent, 2)]
    pid = os.posix_spawn(program[0], program, os.environ, file_actions=inside, setsid=True)
    for each in (reading, silent):
        os.close(each)
    try:
        yield
    finally:
        run_reaper.remove_files(str(folder), files)
        with suppress(BrokenPipeError):
            os.write(writing, run_reaper.DONE)
        os.close(writing)
        os.waitpid(pid, 0)


def _held(command: Sequence[str], variables: dict[str, str], folder: Path, driver: Path, blocked: Set[int]) -> int:
    """Starts the command, passes signals on to it and decides about its GPU time until it ends. The signals are blocked
    here, and in the command those that are `blocked` without Lamina."""
    # It brings numpy, whose threads would take the signals if they began before these were blocked.
    from lamina.enforcement.arbitration import Arbitration
    from lamina.enforcement.driver_work import DriverWork

    work, looked = DriverWork(driver), 0.0
    arbitration = Arbitration(confirm=work.confirmation)
    child = os.posix_spawnp(command[0], list(command), variables, setsigmask=blocked, setsigdef=_IGNORED_BY_PYTHON)
    code, left, ending = None, [child], 0
    while left:
        got = signal.sigtimedwait(_FORWARDED | {signal.SIGCHLD}, _TICK_S)
        if got is not None and got.si_signo != signal.SIGCHLD:
            if got.si_code != _FROM_KERNEL or code is not None:
                _pass_on(got.si_signo, left)
                ending = got.si_signo if got.si_signo in _ENDING else ending
            continue
        if time.monotonic() - looked > _LOOK_S:
            looked = time.monotonic()
            arbitration.attend(own_folders(), writing=lambda one: one == folder)
            left = left if code is None else _left(folder)
        arbitration.tick(now := time.monotonic_ns())
        work.look(arbitration.containers, now)
        if code is None and (ended := os.waitpid(child, os.WNOHANG))[0] == child:
            code = os.waitstatus_to_exitcode(ended[1])
            if ending:  # by who ends a shell, to end what it has started too
                _pass_on(ending, _left(folder))
            left = _left_behind(folder)
    work.close()
    assert code is not None, "it ends before those that it leaves behind"
    return code if code >= 0 else 128 - code


def _left_behind(folder: Path) -> list[int]:
    """The processes that the command has left running, of which a line says that they are waited for."""
    pids = _left(folder)
    if pids:
        named = ", ".join(map(str, pids))
        message = f"The command has ended, but processes that it started have not (PID {named}). Their limits end with"
        print(f"{message} this command, so it waits for them.", file=sys.stderr, flush=True)
    return pids


def _left(folder: Path) -> list[int]:
    """The processes of the tree. One that is starting a program has no environment for a moment, so none is no answer
    before the second look."""
    if pids := list(run_reaper.carrying(str(folder))):
        return pids
    time.sleep(_SECOND_LOOK_S)
    return list(run_reaper.carrying(str(folder)))


def _pass_on(number: int, pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
