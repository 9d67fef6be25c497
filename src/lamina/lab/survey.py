"""What labs this user has, and how they are."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from lamina.lab import status
from lamina.lab.directory import LabDirectory, known_labs
from lamina.lab.plan import Plan


class Row(NamedTuple):
    """One lab. `state` is starting, ready, stopping or crashed."""

    name: str
    state: str
    url: str
    nodes: int
    gpus: int
    kubeconfig: Path


def survey() -> list[Row]:
    """Every lab that has a directory, in order of names."""
    return [_row(directory) for directory in known_labs()]


def _row(directory: LabDirectory) -> Row:
    account = status.read(directory)
    running = status.is_running(directory)
    state = account.phase.value if running and account is not None else "starting" if running else "crashed"
    plan = _plan(directory)
    return Row(
        name=directory.name,
        state=state,
        url=account.url if running and account is not None else "",
        nodes=len(plan.nodes),
        gpus=sum(group.count for node in plan.nodes for group in node.gpus),
        kubeconfig=directory.kubeconfig,
    )


def _plan(directory: LabDirectory) -> Plan:
    try:
        return msgspec.json.decode(directory.plan.read_bytes(), type=Plan)
    except (OSError, msgspec.MsgspecError):
        return Plan(nodes=())
