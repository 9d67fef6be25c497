"""MIG on the nodes of a cluster: what they have, and the request for another configuration."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from lamina.agent.mig.partitioner import LABEL, PENDING, STATE
from lamina.errors import BadInput
from lamina.model.mig_devices import PREFIX
from lamina.ports.kube import INVENTORIES, NODES, Kube, NotFound, Object


class MigNode(Struct, frozen=True):
    """A node that has MIG devices or is asked to have some."""

    name: str
    configuration: str
    """The value of the label nvidia.com/mig.config."""
    state: str
    devices: tuple[str, ...]
    """Devices that kubelet allocates, counted by profile, and instances that were created for grants."""


async def mig_nodes(kube: Kube, selected: Callable[[Mapping[str, str]], bool] | None = None) -> list[MigNode]:
    """The nodes with MIG devices or with a requested configuration, all or those whose labels are selected."""
    try:
        inventories = (await kube.list(INVENTORIES)).items
    except NotFound:
        inventories = []
    instances = {inventory["metadata"]["name"]: _instances(inventory["spec"]) for inventory in inventories}
    nodes = []
    for node in (await kube.list(NODES)).items:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if selected is not None and not selected(labels):
            continue
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        counts = {key.removeprefix(PREFIX): count for key, count in allocatable.items() if key.startswith(PREFIX)}
        if LABEL in labels or counts or instances.get(name):
            devices = sorted(f"{count} {profile}" for profile, count in counts.items() if count != "0")
            described = (*devices, *instances.get(name, ()))
            nodes.append(MigNode(name, labels.get(LABEL, ""), labels.get(STATE, ""), described))
    return nodes


def _instances(inventory: Object) -> list[str]:
    return [
        f"{instance['profile']} at {instance['start']} of GPU {gpu['index']}"
        for gpu in inventory.get("gpus", ())
        for instance in gpu.get("instances", ())
    ]


async def request_configuration(kube: Kube, node: str, configuration: str) -> None:
    """Label the node with the configuration; its agent applies it. Raises BadInput where there is no such node."""
    try:
        await kube.patch(NODES, node, {"metadata": {"labels": {LABEL: configuration, STATE: PENDING}}})
    except NotFound as missing:
        raise BadInput(f"there is no node {node}") from missing
