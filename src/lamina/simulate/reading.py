"""A file of nodes or pods: a trace where it is CSV, else a dump."""

from pathlib import Path

from lamina.dialects.config import DEFAULT, Config
from lamina.errors import BadInput
from lamina.simulate import dump, trace
from lamina.simulate.workload import SimNode, SimPod


def read_nodes(path: Path) -> list[SimNode]:
    """Raises BadInput where the file cannot be read or has no node."""
    found = trace.nodes(_there(path)) if path.suffix == ".csv" else dump.nodes(_there(path))
    if not found:
        raise BadInput(f"{path} has no nodes")
    return found


def read_pods(path: Path, config: Config = DEFAULT) -> list[SimPod]:
    """Raises BadInput where the file cannot be read or has no pod."""
    found = trace.pods(_there(path)) if path.suffix == ".csv" else dump.pods(_there(path), config)
    if not found:
        raise BadInput(f"{path} has no pods")
    return found


def _there(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"{path} is not a file that can be read")
    return path
