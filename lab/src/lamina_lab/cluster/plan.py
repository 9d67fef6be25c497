"""The plan of a lab: its nodes, their GPUs, and the versions of the simulated driver.

The plan comes from options (`--nodes 2 --gpus-per-node 4 --gpu A100-SXM4-40GB`) or from a file that describes each
node. It is complete and checked before anything is created.
"""

import re
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta, Struct

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.object_names import is_namespace_name
from lamina.errors import BadInput
from lamina_lab.simgpu import GpuSpec, Machine
from lamina_lab.simgpu import description as simgpu

DEFAULT_GPU = "V100-SXM2-32GB"
DEFAULT_NODES = 1
DEFAULT_GPUS_PER_NODE = 2
MAX_NODES = 64
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NODE_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")

Count = Annotated[int, Meta(ge=1)]


class NodePlan(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One node. CPU is in whole cores, memory in MiB. Only the scheduler uses them."""

    name: str
    """Lower-case letters, digits, hyphens and dots."""
    gpus: tuple[GpuSpec, ...] = ()
    """Its GPUs, in groups of equal ones."""
    labels: dict[str, str] = {}
    """Labels of the node."""
    cpus: Count = 64
    """Whole cores, for the scheduler."""
    memory_mib: Annotated[int, Meta(ge=1024)] = msgspec.field(default=256 * 1024, name="memoryMiB")
    """Memory in MiB, for the scheduler."""

    def machine(self, plan: "LabPlan") -> Machine:
        """The simulated machine of this node. The name is the seed, so that no two nodes share a UUID."""
        return Machine(gpus=self.gpus, driver=plan.driver, cuda=plan.cuda, seed=self.name)


class LabPlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole lab. `driver` and `cuda` are the versions that the simulated driver reports."""

    nodes: tuple[NodePlan, ...]
    """The nodes, 1 to 64."""
    driver: str = "515.86.01"
    """The version that the simulated driver reports."""
    cuda: str = "11.7"
    """The CUDA version that it reports."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """Port of the API server; 0 picks a free one."""
    namespace: str = DEFAULT_NAMESPACE
    """The namespace in which Lamina is installed."""
    dra: bool = False
    """Whether the agents serve ResourceClaims."""
    binding_conditions: bool = False
    """Whether they prepare claims before pods are bound; with `dra`."""


def from_options(*, nodes: int, gpus_per_node: int, gpu: str, port: int) -> LabPlan:
    """The plan for equal nodes named node-0, node-1 and so on. Raises BadInput."""
    if not 1 <= nodes <= MAX_NODES:
        raise BadInput(f"--nodes must be from 1 to {MAX_NODES}, got {nodes}")
    groups = (GpuSpec(model=gpu, count=gpus_per_node),) if gpus_per_node else ()
    plan = LabPlan(nodes=tuple(NodePlan(name=f"node-{i}", gpus=groups) for i in range(nodes)), port=port)
    return checked(plan, "options")


def from_file(path: Path, *, port: int) -> LabPlan:
    """The plan that a YAML file describes. Raises BadInput, which names the file, the field and the allowed values."""
    try:
        plan = msgspec.convert(yaml.safe_load(path.read_text()), LabPlan)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise BadInput(f"{path} does not describe a lab: {error}") from error
    return checked(msgspec.structs.replace(plan, port=port or plan.port), str(path))


def describes_machines(text: str) -> bool:
    """Whether this is such a file, or was meant to be."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return isinstance(found, dict) and isinstance(found.get("nodes"), list)


def checked(plan: LabPlan, where: str) -> LabPlan:
    """Return `plan` if every node can be created. Raises BadInput."""
    if not 1 <= len(plan.nodes) <= MAX_NODES:
        raise BadInput(f"{where}: the number of nodes must be from 1 to {MAX_NODES}, got {len(plan.nodes)}")
    if not is_namespace_name(plan.namespace):
        raise BadInput(f"{where}: namespace must be the name of a namespace, got {plan.namespace!r}")
    names = [node.name for node in plan.nodes]
    for node in plan.nodes:
        if _NODE_NAME.fullmatch(node.name) is None:
            raise BadInput(
                f"{where}: {node.name!r} is not a valid node name; use lower-case letters, digits, inner hyphens and "
                "dots"
            )
        if names.count(node.name) > 1:
            raise BadInput(f"{where}: two nodes are named {node.name}")
        try:
            simgpu.check(node.machine(plan))
        except BadInput as error:
            raise BadInput(f"{where}: node {node.name}: {error}") from error
    return plan
