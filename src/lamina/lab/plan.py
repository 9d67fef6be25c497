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
from lamina.model.cards import card

DEFAULT_GPU = "V100-SXM2-32GB"
MAX_NODES = 64
MAX_GPUS = 16
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

Count = Annotated[int, Meta(ge=1)]


class GpuGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`count` GPUs of one model, named as in the table of cards."""

    model: str = DEFAULT_GPU
    count: Count = 1


class NodePlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node. CPU is in whole cores, memory in MiB; both only matter to the scheduler."""

    name: str
    gpus: tuple[GpuGroup, ...] = ()
    labels: dict[str, str] = {}
    cpus: Count = 64
    memory_mib: Annotated[int, Meta(ge=1024)] = 256 * 1024


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a lab. `driver` and `cuda` are the versions that the simulated driver reports."""

    nodes: tuple[NodePlan, ...]
    driver: str = "515.86.01"
    cuda: str = "11.7"
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """The API server's port; 0 takes a free one."""


def from_options(*, nodes: int, gpus_per_node: int, gpu: str, port: int) -> Plan:
    """The plan of equal nodes named node-0, node-1 and so on. Raises BadInput."""
    groups = (GpuGroup(model=gpu, count=gpus_per_node),) if gpus_per_node else ()
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
        total = sum(group.count for group in node.gpus)
        if not 0 <= total <= MAX_GPUS:
            raise BadInput(f"{where}: node {node.name} has {total} GPUs; allowed are 0 to {MAX_GPUS}")
        for group in node.gpus:
            card(group.model)
    return plan
