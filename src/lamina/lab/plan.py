"""What a lab is asked to be: its nodes, their GPUs, and the configuration it runs under.

The plan comes from options (`--nodes 2 --gpus-per-node 4 --gpu A100-SXM4-40GB`) or from a file that describes each
node, and is complete and checked before anything is made.
"""

import re
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta, Struct

from lamina.errors import BadInput
from lamina.simgpu import GpuSpec, Machine
from lamina.simgpu import description as simgpu

DEFAULT_GPU = "V100-SXM2-32GB"
DEFAULT_NODES = 1
DEFAULT_GPUS_PER_NODE = 2
MAX_NODES = 64
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

Count = Annotated[int, Meta(ge=1)]


class NodePlan(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One node. CPU is in whole cores, memory in MiB; both only matter to the scheduler."""

    name: str
    gpus: tuple[GpuSpec, ...] = ()
    labels: dict[str, str] = {}
    cpus: Count = 64
    memory_mib: Annotated[int, Meta(ge=1024)] = msgspec.field(default=256 * 1024, name="memoryMiB")

    def machine(self, plan: "Plan") -> Machine:
        """The simulated machine of this node; its name is the seed, so that no two nodes share a UUID."""
        return Machine(gpus=self.gpus, driver=plan.driver, cuda=plan.cuda, seed=self.name)


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a lab. `driver` and `cuda` are the versions that the simulated driver reports."""

    nodes: tuple[NodePlan, ...]
    driver: str = "515.86.01"
    cuda: str = "11.7"
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """The API server's port; 0 takes a free one."""


def from_options(*, nodes: int, gpus_per_node: int, gpu: str, port: int) -> Plan:
    """The plan of equal nodes named node-0, node-1 and so on. Raises BadInput."""
    if not 1 <= nodes <= MAX_NODES:
        raise BadInput(f"the options: {nodes} nodes; allowed are 1 to {MAX_NODES}")
    groups = (GpuSpec(model=gpu, count=gpus_per_node),) if gpus_per_node else ()
    plan = Plan(nodes=tuple(NodePlan(name=f"node-{i}", gpus=groups) for i in range(nodes)), port=port)
    return checked(plan, "the options")


def from_file(path: Path, *, port: int) -> Plan:
    """The plan that a YAML file describes. Raises BadInput naming the file, the place and what is allowed."""
    try:
        plan = msgspec.convert(yaml.safe_load(path.read_text()), Plan)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise BadInput(f"{path} does not describe a lab: {error}") from error
    return checked(msgspec.structs.replace(plan, port=port or plan.port), str(path))


def checked(plan: Plan, where: str) -> Plan:
    """`plan` itself, if every node can be made. Raises BadInput."""
    if not 1 <= len(plan.nodes) <= MAX_NODES:
        raise BadInput(f"{where}: {len(plan.nodes)} nodes; allowed are 1 to {MAX_NODES}")
    names = [node.name for node in plan.nodes]
    for node in plan.nodes:
        if _NODE_NAME.fullmatch(node.name) is None:
            raise BadInput(f"{where}: {node.name!r} is not a node's name; allowed are lower-case letters, digits and -")
        if names.count(node.name) > 1:
            raise BadInput(f"{where}: two nodes are named {node.name}")
        try:
            simgpu.check(node.machine(plan))
        except BadInput as error:
            raise BadInput(f"{where}: node {node.name}: {error}") from error
    return plan
