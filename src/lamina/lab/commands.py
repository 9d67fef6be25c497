"""How each process of a lab is called. Agent and control part get the product's own commands and options."""

import json
import os
import sys
from pathlib import Path

from lamina import native, simgpu
from lamina.lab.children import Child
from lamina.lab.directory import MARKER, LabDirectory, NodeDirectory
from lamina.lab.plan import NodePlan

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


def environment(directory: LabDirectory) -> dict[str, str]:
    """What every process of the lab gets: little of the caller's, and the lab's marker."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return passed_on | {MARKER: str(directory.root), "PYTHONUNBUFFERED": "1"}


def control(directory: LabDirectory) -> Child:
    """The control part, which writes the ports it got into the lab's `addresses` file."""
    command = [
        *(sys.executable, "-m", "lamina", "control"),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--extender-bind", "127.0.0.1:0"),
        *("--admission-bind", "127.0.0.1:0"),
        *("--addresses-file", str(directory.addresses)),
    ]
    return Child("control", command, directory.log("control"), environment(directory))


def agent(directory: LabDirectory, node: NodeDirectory, name: str) -> Child:
    """One node's agent, on the simulated machine of that node."""
    command = [
        *(sys.executable, "-m", "lamina", "agent"),
        *("--node", name),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--kubelet-dir", str(node.kubelet)),
        *("--cdi-dir", str(node.cdi)),
        *("--state-dir", str(node.agent_state)),
        *("--driver-dir", str(_driver())),
        *("--mps-root", str(node.mps)),
        *("--metrics-bind", "127.0.0.1:0"),
    ]
    machine, given = simgpu.environment(node.machine), environment(directory)
    path = os.pathsep.join((str(directory.programs), given.get("PATH", os.defpath)))  # where nvidia-smi is
    return Child(f"agent of {name}", command, node.log("agent"), given | machine | {"PATH": path})


def kubelet(directory: LabDirectory, node: NodeDirectory, plan: NodePlan) -> Child:
    """One node's kubelet. Containers with a GPU find the simulated driver; the others see no GPU."""
    machine = simgpu.environment(node.machine)
    command = [
        *(sys.executable, "-m", "lamina.lab.kubelet"),
        *("--node", plan.name),
        *("--lab-id", str(directory.root)),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--kubelet-dir", str(node.kubelet)),
        *("--cdi-dir", str(node.cdi)),
        *("--programs", str(directory.programs)),
        *("--root-dir", str(node.root)),
        *("--socket", str(node.kubelet_api)),
        *("--cpus", str(plan.cpus)),
        *("--memory-mib", str(plan.memory_mib)),
        *(option for key, value in plan.labels.items() for option in ("--label", f"{key}={value}")),
        *(option for key, value in machine.items() for option in ("--container-env", f"{key}={value}")),
    ]
    return Child(f"kubelet of {plan.name}", command, node.log("kubelet"), environment(directory))


def _driver() -> Path:
    return native.path("simgpu/libcuda.so.1").parent


def extender_url(directory: LabDirectory) -> str | None:
    """Where the control part's extender listens, or None while it has not said so."""
    try:
        return str(json.loads(directory.addresses.read_text())["extender"])
    except (OSError, ValueError, KeyError):
        return None
