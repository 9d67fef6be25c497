"""The command lines of a lab's processes. Agent and controller use the product's own commands and options."""

import json
import os
import sys
from pathlib import Path

from lamina_lab import simgpu
from lamina_lab.cluster.children import Child
from lamina_lab.cluster.plan import LabPlan, NodePlan
from lamina_lab.host.directory import MARKER, LabDirectory, NodeDirectory

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


def environment(directory: LabDirectory) -> dict[str, str]:
    """The environment of every process of the lab: a few of the caller's variables, and the lab's marker."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | {MARKER: str(directory.root), "PYTHONUNBUFFERED": "1"}


def _lamina(plan: LabPlan, component: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "lamina", "--lamina-namespace", plan.namespace, component)


def controller(directory: LabDirectory, plan: LabPlan, admission_port: int) -> Child:
    """The controller, which writes the ports it got to the lab's `addresses` file.

    It evicts for pods that lack GPU memory or compute alone, because the lab's scheduler does not ask about them.
    """
    command = [
        *_lamina(plan, "controller"),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--extender-bind", "127.0.0.1:0"),
        *("--admission", f"127.0.0.1:{admission_port}"),
        *("--metrics-bind", "127.0.0.1:0"),
        *("--addresses-file", str(directory.addresses)),
        "--preemption",
        *(["--dra"] if plan.dra else []),
    ]
    return Child("controller", command, directory.log("controller"), environment(directory))


def admission(directory: LabDirectory, plan: LabPlan, port: int) -> Child:
    """Admission, which listens on that port."""
    command = [
        *_lamina(plan, "admission"),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--bind", f"127.0.0.1:{port}"),
        *("--metrics-bind", "127.0.0.1:0"),
        *("--addresses-file", str(directory.admission_addresses)),
    ]
    return Child("admission", command, directory.log("admission"), environment(directory))


def agent(directory: LabDirectory, node: NodeDirectory, name: str, plan: LabPlan) -> Child:
    """One node's agent, on the simulated machine of that node."""
    command = [
        *_lamina(plan, "agent"),
        *("--node", name),
        *("--kubeconfig", str(directory.kubeconfig)),
        *("--kubelet-dir", str(node.kubelet)),
        *("--cdi-dir", str(node.cdi)),
        *("--state-dir", str(node.agent_state)),
        *("--driver-dir", str(simgpu.driver_folder())),
        *("--mps-root", str(node.mps)),
        *("--mps-socket", str(node.mps_socket)),
        *("--metrics-bind", "127.0.0.1:0"),
        *(["--dra"] if plan.dra else []),
        *(["--dra-binding-conditions"] if plan.binding_conditions else []),
    ]
    return Child(f"agent of {name}", command, node.log("agent"), on_machine(directory, node))


def mps_service(directory: LabDirectory, node: NodeDirectory, name: str) -> Child:
    """One node's MPS service. A lab may have no right to mount, so the clients share a directory."""
    command = [
        *(sys.executable, "-m", "lamina", "mps"),
        *("--mps-socket", str(node.mps_socket)),
        *("--shm-mib", "0"),
    ]
    return Child(f"MPS service of {name}", command, node.log("mps"), on_machine(directory, node))


def on_machine(directory: LabDirectory, node: NodeDirectory) -> dict[str, str]:
    """The environment of a component on a node: with the simulated machine, and NVIDIA's programs on the path."""
    machine, common = simgpu.environment(node.machine), environment(directory)
    path = os.pathsep.join((str(directory.programs), common.get("PATH", os.defpath)))
    return common | machine | {"PATH": path}


def kubelet(directory: LabDirectory, node: NodeDirectory, plan: NodePlan) -> Child:
    """One node's kubelet. Containers with a GPU find the simulated driver; the others see no GPU."""
    machine = simgpu.environment(node.machine)
    command = [
        *(sys.executable, "-m", "lamina_lab.kubelet"),
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


def extender_url(directory: LabDirectory) -> str | None:
    """The URL of the controller's extender, or None while the controller has not written it."""
    return _written_url(directory.addresses, "extender")


def metrics_url(directory: LabDirectory) -> str | None:
    """The URL of the controller's metrics, or None while the controller has not written it."""
    url = _written_url(directory.addresses, "metrics")
    return url and f"{url}/metrics"


def admission_probe_url(directory: LabDirectory) -> str | None:
    """The URL that says whether admission is ready, or None while admission has not written it."""
    url = _written_url(directory.admission_addresses, "metrics")
    return url and f"{url}/readyz"


def _written_url(addresses: Path, service: str) -> str | None:
    try:
        return str(json.loads(addresses.read_text())[service])
    except (OSError, ValueError, KeyError):
        return None
