"""A file of nodes or pods: a trace where it is CSV, else a dump."""

from pathlib import Path
from typing import TypeGuard

from lamina.configuration import DEFAULT, Config
from lamina.errors import BadInput
from lamina.operations.simulate import dump, trace
from lamina.operations.simulate.dump import DumpText
from lamina.simulation.workload import SimNode, SimPod


def read_nodes(file: Path | DumpText) -> list[SimNode]:
    """Raises BadInput where the file cannot be read or has no node."""
    found = trace.nodes(file) if _is_trace(file) else dump.nodes(_dump(file))
    if not found:
        raise BadInput(f"{_name(file)} has no nodes; make a dump of a cluster with kubectl get nodes,pods -A -o json")
    return found


def read_pods(file: Path | DumpText, config: Config = DEFAULT) -> list[SimPod]:
    """Raises BadInput where the file cannot be read or has no pod."""
    found = trace.pods(file) if _is_trace(file) else dump.pods(_dump(file), config)
    if not found:
        raise BadInput(f"{_name(file)} has no pods and no workloads")
    return found


def _is_trace(file: Path | DumpText) -> TypeGuard[Path]:
    return isinstance(file, Path) and file.suffix == ".csv"


def _dump(file: Path | DumpText) -> DumpText:
    return DumpText.of_file(file) if isinstance(file, Path) else file


def _name(file: Path | DumpText) -> str:
    return str(file) if isinstance(file, Path) else file.name
