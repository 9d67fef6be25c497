"""The labs of this user and their state."""

import msgspec

from lamina_lab.cluster.plan import LabPlan
from lamina_lab.host import status
from lamina_lab.host.directory import LabDirectory, known_labs


class LabSummary(msgspec.Struct, frozen=True):
    """One lab. `state` is starting, ready, stopping or crashed."""

    name: str
    state: str
    url: str
    nodes: int
    gpus: int
    kubeconfig: str


def survey() -> list[LabSummary]:
    """Every lab that has a directory, in order of names."""
    return [_row(directory) for directory in known_labs()]


def _row(directory: LabDirectory) -> LabSummary:
    written = status.read(directory)
    running = status.is_running(directory)
    state = written.phase.value if running and written is not None else "starting" if running else "crashed"
    plan = _plan(directory)
    return LabSummary(
        name=directory.name,
        state=state,
        url=written.url if running and written is not None else "",
        nodes=len(plan.nodes),
        gpus=sum(group.count for node in plan.nodes for group in node.gpus),
        kubeconfig=str(directory.kubeconfig),
    )


def _plan(directory: LabDirectory) -> LabPlan:
    try:
        return msgspec.json.decode(directory.plan.read_bytes(), type=LabPlan)
    except (OSError, msgspec.MsgspecError):
        return LabPlan(nodes=())
