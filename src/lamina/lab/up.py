"""Start a lab, and return when its API answers and its nodes are Ready.

Everything that can be refused is refused before anything is made. What a crashed lab of the same name left is said
and taken away first. If the start fails or is interrupted, nothing of it stays but the sentence that says why.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lamina.dialects import config as configuration
from lamina.errors import BadInput, LaminaError
from lamina.lab import leftovers, status
from lamina.lab.api.kubeconfig import write as write_kubeconfig
from lamina.lab.directory import MARKER, LabDirectory, lab_directory, labs_root, make_private
from lamina.lab.plan import Plan
from lamina.lab.status import Phase

START_S = 180.0
"""Enough for 64 nodes on two cores; a lab that takes longer is stuck."""

Say = Callable[[str], object]


def up(
    name: str, plan: Plan, *, config_file: Path | None, kubeconfig: Path | None, say: Say, progress: Say
) -> LabDirectory:
    """Start the lab `name`. `say` is told what a person should know, `progress` what is being waited for.

    Raises BadInput for what was asked wrongly, LaminaError when the lab does not get ready.
    """
    directory = lab_directory(name)
    text = _configuration(config_file)
    _check_writable(kubeconfig)
    make_private(labs_root())
    if status.is_running(directory):
        raise BadInput(f"the lab {name} is running already; `lamina lab down --name {name}` stops it")
    if directory.root.exists():
        met = leftovers.sweep(directory)
        leftovers.remove(directory)
        say(f"The lab {name} had crashed; {met} of its processes were still there, and what it left is removed.")
    make_private(directory.root)
    directory.plan.write_bytes(msgspec.json.encode(plan))
    directory.config.write_text(text)
    supervisor = _start(directory)
    try:
        _wait_until_ready(directory, supervisor, progress)
        if kubeconfig is not None:
            write_kubeconfig(kubeconfig, directory.kubeconfig.read_text())
    except BaseException:
        _abandon(directory, supervisor)
        raise
    return directory


def _configuration(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the configuration {path} cannot be read: {error}") from error
    configuration.load(text, str(path))
    return text


def _check_writable(kubeconfig: Path | None) -> None:
    if kubeconfig is not None and (kubeconfig.is_dir() or not os.access(kubeconfig.absolute().parent, os.W_OK)):
        raise BadInput(f"--kubeconfig {kubeconfig} cannot be written; allowed is a file in a directory of yours")


def _start(directory: LabDirectory) -> subprocess.Popen[bytes]:
    with directory.log("supervisor").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lamina.lab.serve", str(directory.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {MARKER: str(directory.root)},
        )


def _wait_until_ready(directory: LabDirectory, supervisor: subprocess.Popen[bytes], progress: Say) -> None:
    deadline = time.monotonic() + START_S
    waiting_for = "the supervisor"
    while time.monotonic() < deadline:
        account = status.read(directory)
        if account is not None and account.phase is Phase.READY:
            return
        if account is not None and account.phase is Phase.FAILED:
            raise LaminaError(account.message)
        if supervisor.poll() is not None:
            raise LaminaError(f"the lab's supervisor ended with {supervisor.returncode}: {_last_words(directory)}")
        if account is not None and account.message:
            waiting_for = account.message
            progress(f"Starting the lab: waiting for {waiting_for}")
        time.sleep(0.05)
    raise LaminaError(f"the lab was not ready after {START_S:.0f} s; it still waited for {waiting_for}")


def _last_words(directory: LabDirectory) -> str:
    lines = directory.log("supervisor").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _abandon(directory: LabDirectory, supervisor: subprocess.Popen[bytes]) -> None:
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
    leftovers.sweep(directory)
    leftovers.remove(directory)
