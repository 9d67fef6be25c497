"""Sandboxes: namespaces for mounts, network, processes, host name and shared memory, held by one process.

A sandbox sees the machine's files, except for /run, which is empty, and for the folders that are given to it.
"""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.components.commands import Unavailable, run

SETTINGS = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "kernel/random/boot_id"),
)
"""What kubelet sets for the whole machine, and by what it knows a reboot. In a sandbox these are files of its own."""
HOLDER = Path(__file__).with_name("holder.py")
SPACES = ("--mount", "--net", "--pid", "--uts", "--ipc")
STOP_S = 20.0


class Sandbox:
    """An open sandbox. `places` are folders of the machine that its processes see in place of others."""

    def __init__(self, name: str, places: Mapping[Path, Path]) -> None:
        self.name = name
        read, self._write = os.pipe()
        command = ["unshare", *SPACES, "--fork", "--mount-proc", sys.executable, "-I", str(HOLDER), str(read)]
        self._outside = subprocess.Popen(
            command,
            pass_fds=[read],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        os.close(read)
        assert self._outside.stdout is not None
        if self._outside.stdout.readline() != "ready\n":
            self.close()
            raise Unavailable(f"namespaces for {name} could not be made; the cluster under test needs root")
        self.pid = child_of(self._outside.pid)
        self._furnish(places)

    def _furnish(self, places: Mapping[Path, Path]) -> None:
        self.run("hostname", self.name)
        self.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        self.run("mkdir", "/run/lock")
        for name in SETTINGS:
            self._replace(Path("/proc/sys") / name)
        for place, folder in places.items():
            folder.mkdir(parents=True, exist_ok=True)
            self.run("mount", "--bind", str(folder), str(place))
        self.run("mount", "--make-rshared", "/")
        self.run("ip", "link", "set", "lo", "up")

    def _replace(self, setting: Path) -> None:
        """Put a file in the place of a setting, with its value; each sandbox has another boot ID."""
        if not setting.exists():
            return
        value = str(uuid.uuid4()) if setting.name == "boot_id" else setting.read_text().strip()
        file = f"/run/settings/{setting.name}"
        self.run("sh", "-c", f"mkdir -p /run/settings && echo {value} > {file} && mount --bind {file} {setting}")

    def command(self, *words: str | Path) -> list[str]:
        """The command that runs `words` in the sandbox."""
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "-u", "-i", "--", *map(str, words)]

    def run(
        self, *words: str | Path, env: Mapping[str, str] | None = None, stdin: str = "", timeout: float = 60
    ) -> str:
        """Standard output of a program that ran in the sandbox. Raises Unavailable."""
        return run(self.command(*words), env=env, stdin=stdin, timeout=timeout)

    def run_outside_pids(self, *words: str | Path) -> str:
        """The same in the sandbox's network, with the machine's files and processes."""
        return run(["nsenter", "-t", str(self.pid), "-n", "--", *map(str, words)])

    def close(self) -> None:
        """End all processes of the sandbox; returns when they are gone."""
        os.close(self._write)
        try:
            self._outside.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._outside.kill()
            self._outside.wait()


def child_of(pid: int) -> int:
    """The only child of a process, as seen from outside of its namespaces. Raises Unavailable when there is none."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            break
        if children:
            return int(children[0])
        time.sleep(0.005)
    raise Unavailable(f"process {pid} has no child")
