"""Start a lab and return when its API answers and its nodes are Ready.

Invalid input is refused before anything is created. Leftovers of a crashed lab of the same name are reported and
removed first. If the start fails or is interrupted, nothing stays except the message that says why.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import msgspec

from lamina import __version__, configuration
from lamina.errors import BadInput, LaminaError
from lamina_lab.api.access.kubeconfig import write as write_kubeconfig
from lamina_lab.cluster.plan import LabPlan, describes_machines
from lamina_lab.host import leftovers, status
from lamina_lab.host.directory import MARKER, LabDirectory, lab_directory, labs_root, make_private
from lamina_lab.host.status import Phase

START_S = 180.0
"""Enough for 64 nodes on two cores. A lab that takes longer is stuck."""

_CONFIGURATION = """\
apiVersion: lamina.dev/v1alpha1
kind: Configuration
sharing:
  highPriorityNamespaces: ["*"]
"""
"""Of a lab without another one: pods of a lab need no protection from each other."""

Print = Callable[[str], object]


def up(
    name: str, plan: LabPlan, *, config_file: Path | None, kubeconfig: Path | None, say: Print, progress: Print
) -> LabDirectory:
    """Start the lab `name`. `say` prints messages for the user, `progress` what the start is waiting for.

    Raises BadInput for invalid input and LaminaError if the lab does not become ready.
    """
    _check_version()
    directory = lab_directory(name)
    text = _configuration(config_file)
    _check_writable(kubeconfig)
    make_private(labs_root())
    if status.is_running(directory):
        raise BadInput(f"lab {name} is already running; stop it with `lamina lab down --name {name}`")
    if directory.root.exists():
        killed = leftovers.sweep(directory)
        leftovers.remove(directory)
        still_running = "1 process was" if killed == 1 else f"{killed} processes were"
        say(f"Lab {name} had crashed. Removed what it left; {still_running} still running.")
    make_private(directory.root)
    directory.plan.write_bytes(msgspec.json.encode(plan))
    directory.config.write_text(text)
    supervisor = _start(directory)
    try:
        _wait_until_ready(directory, supervisor, progress)
        if kubeconfig is not None:
            write_kubeconfig(kubeconfig, directory.kubeconfig.read_text())
    except BaseException:
        _clean_up(directory, supervisor)
        raise
    return directory


def _check_version() -> None:
    """Raises BadInput for a lab of another version than the product: it uses what is not for other packages."""
    if (own := version("lamina-lab")) != __version__:
        raise BadInput(
            f"lamina-lab {own} is not for lamina {__version__}; install the same version of both, such as "
            f"`pip install lamina=={own} lamina-lab=={own}`"
        )


def _configuration(path: Path | None) -> str:
    if path is None:
        return _CONFIGURATION
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the configuration {path}: {error}") from error
    if describes_machines(text):
        raise BadInput(f"{path} describes the machines of a lab, not a configuration; use --machines {path}")
    configuration.load(text, str(path))
    return text


def _check_writable(kubeconfig: Path | None) -> None:
    if kubeconfig is not None and (kubeconfig.is_dir() or not os.access(kubeconfig.absolute().parent, os.W_OK)):
        raise BadInput(f"cannot write --kubeconfig {kubeconfig}; choose a file in a directory that you can write to")


def _start(directory: LabDirectory) -> subprocess.Popen[bytes]:
    with directory.log("supervisor").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lamina_lab.cluster.serve", str(directory.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {MARKER: str(directory.root)},
        )


def _wait_until_ready(directory: LabDirectory, supervisor: subprocess.Popen[bytes], progress: Print) -> None:
    deadline = time.monotonic() + START_S
    waiting_for = "the supervisor"
    while time.monotonic() < deadline:
        written = status.read(directory)
        if written is not None and written.phase is Phase.READY:
            return
        if written is not None and written.phase is Phase.FAILED:
            raise LaminaError(written.message)
        if supervisor.poll() is not None:
            raise LaminaError(f"the lab's supervisor exited with {supervisor.returncode}: {_last_log_line(directory)}")
        if written is not None and written.message:
            waiting_for = written.message
            progress(f"Starting the lab: waiting for {waiting_for}")
        time.sleep(0.05)
    raise LaminaError(f"the lab is not ready after {START_S:.0f} s; it is waiting for {waiting_for}")


def _last_log_line(directory: LabDirectory) -> str:
    lines = directory.log("supervisor").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its log is empty"


def _clean_up(directory: LabDirectory, supervisor: subprocess.Popen[bytes]) -> None:
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
    leftovers.sweep(directory)
    leftovers.remove(directory)
