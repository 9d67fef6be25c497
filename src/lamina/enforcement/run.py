"""One process tree under a limit on this machine, without Kubernetes."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from lamina.core.grants import ComputePolicy
from lamina.core.quantities import MIB, parse_memory_mib
from lamina.enforcement import run_reaper
from lamina.enforcement.driver import LocalGpu, choose, find_driver, find_simulator, gpus
from lamina.enforcement.environment import environment
from lamina.enforcement.files import write_container
from lamina.enforcement.limits import DeviceLimit, Limits
from lamina.errors import BadInput

_FORWARDED = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
)
_TICK_S, _LOOK_S = 0.01, 0.5
_PREFIX = f"lamina-run-{os.geteuid()}-"
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_FROM_KERNEL = 0x80  # si_code of a signal that no process sent: the terminal's, which reaches the whole group


class ContainerDevice(Protocol):
    """Gives the limits of a run to the containers that the command starts, and not to the command."""

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
    gpu: str = "0",
    simulate: str | None = None,
    cores: int = 0,
    policy: str = "cap",
    device: ContainerDevice | None = None,
) -> int:
    """Runs the command and waits for it; its processes together get no more of one GPU than `memory`, and than `cores`
    percent of its time where that is not 0; `policy` is "cap", or "weight" when they may have what others leave.

    `simulate` names a GPU model to use instead of the machine's driver. With `device`, the limits are those of the
    containers that have it, all together. Returns the command's exit code, or 128 and the
    signal's number if one ended it. Raises BadInput for wrong arguments and Outside when there is no driver; then
    nothing was started.
    """
    if not command:
        raise BadInput("there is no command to run; write it after --")
    mib = parse_memory_mib(memory, where="--memory")
    if not 0 <= cores <= 100:
        raise BadInput(f"--cores must be an integer from 0 to 100, got {cores}")
    if policy not in ("cap", "weight"):
        raise BadInput(f"--policy must be cap or weight, got {policy!r}")
    if shutil.which(command[0]) is None:
        raise BadInput(f"there is no program {command[0]!r}")
    with _folder() as (folder, blocked):
        variables, driver, chosen = _machine(folder, gpu, simulate)
        if mib > chosen.memory_mib:
            raise BadInput(f"--memory {memory} is more than GPU {chosen.index} has, {chosen.memory_mib} MiB")
        limit = DeviceLimit(
            uuid=chosen.uuid,
            memory_bytes=mib * MIB,
            cores_percent=cores,
            compute_policy=ComputePolicy(policy) if cores else ComputePolicy.NONE,
        )
        write_container(folder, Limits(devices=(limit,)))
        with _guarded(folder, () if device is None else (str(device.spec),)):
            if device is None:
                variables = environment(folder, driver, variables)
            else:
                device.write(folder, driver, chosen.uuid)
                variables["LAMINA_DIR"] = str(folder)
            return _held(command, variables, folder, driver, blocked)


@contextmanager
def _folder() -> Iterator[tuple[Path, Set[int]]]:
    """A private directory, removed afterwards, and the signals that are blocked for who runs this. Those to pass on
    wait until there is a process to receive them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED | {signal.SIGCHLD})
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
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


def _runs() -> list[Path]:
    """The folders of all runs of this user, which know of each other by them."""
    found = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid():
                found.append(folder)
    return found


def _machine(folder: Path, gpu: str, simulate: str | None) -> tuple[dict[str, str], Path, LocalGpu]:
    """Environment, driver directory and chosen GPU of the machine that the command shall see."""
    variables = dict(os.environ)
    if simulate is None:
        driver = find_driver()
        return variables, driver, choose(gpus(driver), gpu)
    variables.pop("NVIDIA_VISIBLE_DEVICES", None)
    machine = find_simulator()(simulate, folder)
    return variables | machine.environment, machine.driver, choose(machine.gpus, gpu)


def _held(command: Sequence[str], variables: dict[str, str], folder: Path, driver: Path, blocked: Set[int]) -> int:
    """Starts the command, passes signals on to it and decides about its GPU time until it ends. The signals are blocked
    here, and in the command those that are `blocked` without Lamina."""
    # It brings numpy, whose threads would take the signals if they began before these were blocked.
    from lamina.enforcement.arbitration import Arbitration
    from lamina.enforcement.driver_work import DriverWork

    work, looked = DriverWork(driver), 0.0
    arbitration = Arbitration(confirm=work.confirmation)
    child = os.posix_spawnp(command[0], list(command), variables, setsigmask=blocked, setsigdef=_IGNORED_BY_PYTHON)
    while True:
        got = signal.sigtimedwait(_FORWARDED | {signal.SIGCHLD}, _TICK_S)
        if got is not None and got.si_signo != signal.SIGCHLD:
            if got.si_code != _FROM_KERNEL:
                os.kill(child, got.si_signo)
            continue
        if time.monotonic() - looked > _LOOK_S:
            looked = time.monotonic()
            arbitration.attend(_runs(), writing=lambda one: one == folder)
        arbitration.tick(now := time.monotonic_ns())
        work.look(arbitration.containers, now)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended == child:
            work.close()
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
