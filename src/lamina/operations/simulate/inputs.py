"""A file of nodes or pods: a trace where it is CSV, else a dump."""

from pathlib import Path

from lamina.configuration import DEFAULT, Config
from lamina.errors import BadInput
from lamina.operations.simulate import dump, trace
from lamina.operations.simulate.workload import SimNode, SimPod


def read_nodes(path: Path) -> list[SimNode]:
    """Raises BadInput where the file cannot be read or has no node."""
    found = trace.nodes(path) if path.suffix == ".csv" else dump.nodes(path)
    if not found:
        raise BadInput(f"{path} has no nodes; make a dump of a cluster with kubectl get nodes,pods -A -o json")
    return found


def read_pods(path: Path, config: Config = DEFAULT) -> list[SimPod]:
    """Raises BadInput where the file cannot be read or has no pod."""
    found = trace.pods(path) if path.suffix == ".csv" else dump.pods(path, config)
    if not found:
        raise BadInput(f"{path} has no pods and no workloads")
    return found
