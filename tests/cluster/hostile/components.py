"""Whether Lamina's own processes go on as they are: the same processes, within their memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.cluster.components.commands import Unavailable
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.processes import Processes

MAX_MIB = {"controller": 600, "admission": 600, "agent": 400, "mps": 300, "lamina-scheduler": 1000}
"""What each may take, with its children."""


class Program(NamedTuple):
    """A component's process: its pid, none where it has ended, and what it takes with its children."""

    pid: int | None
    mib: int


def programs(lamina: Processes) -> dict[str, Program]:
    """All components by name, as they are now."""
    found = {each.name: _program(each) for each in (*lamina.controllers, lamina.admission, lamina.scheduler)}
    for kind, daemons in (("agent", lamina.agents), ("mps", lamina.mps)):
        found |= {f"{kind} of {node}": _program(each) for node, each in daemons.items()}
    return found


def changes(before: Mapping[str, Program], now: Mapping[str, Program]) -> list[str]:
    """What is wrong with the components, one sentence each."""
    sentences = []
    for name, program in now.items():
        if program.pid is None:
            sentences.append(f"{name} has ended")
        elif program.pid != before[name].pid:
            sentences.append(f"{name} has started again")
        most = next(mib for kind, mib in MAX_MIB.items() if name.startswith(kind))
        if program.mib > most:
            sentences.append(f"{name} takes {program.mib} MiB, more than {most}")
    return sentences


def _program(daemon: Daemon) -> Program:
    if not daemon.running:
        return Program(None, 0)
    try:
        return Program(daemon.pid, sum(_resident_kib(pid) for pid in _family(daemon.pid)) // 1024)
    except Unavailable:
        return Program(None, 0)


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:
        try:
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
        except OSError:
            continue
    return found


def _resident_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
