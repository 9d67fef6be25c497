"""The inventory that a node will have, by the labels of its template.

An autoscaler asks where a pod would fit on nodes that do not exist yet. It describes such a node by a template: a Node
object with labels and amounts, without an agent and so without an Inventory. The labels are those that GPU feature
discovery and Lamina's agents write. Labels decide only whether a new node may help; shares are never granted by them.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from lamina.core.cards import card
from lamina.core.config import Config, NodeSettings
from lamina.core.gpus import Gpu, Inventory, NativeResource
from lamina.core.mig_cards import mig_card
from lamina.core.nodes import kept_out
from lamina.core.quantities import MAX_MIB
from lamina.core.sharing import GPU, Strategy
from lamina.dialects.native_devices import native_resources
from lamina.dialects.nvidia import node_gpus
from lamina.errors import BadInput

MAX_GPUS = 128
"""As an Inventory may have."""
_NO_GPU = f"its template describes no GPU; set the label {GPU}.count there"
_NO_MEMORY = f"its template does not say how much memory its GPUs have; set the label {GPU}.memory there, in MiB"


class _Metadata(Struct):
    name: str
    labels: dict[str, str] | None = None


class _Status(Struct):
    allocatable: dict[str, str | int] | None = None
    capacity: dict[str, str | int] | None = None


class _Node(Struct):
    metadata: _Metadata
    status: _Status | None = None


def template_inventory(node: Mapping[str, Any], config: Config) -> Inventory:
    """What a node made from this template will offer under the configuration. Raises BadInput where it is no GPU."""
    try:
        shape = msgspec.convert(node, _Node)
        described = list(islice(node_gpus.read_node(node), MAX_GPUS + 1))
    except (ValueError, msgspec.ValidationError) as error:
        raise BadInput(f"its template cannot be read: {error}") from error
    name, labels = shape.metadata.name, shape.metadata.labels or {}
    status = shape.status or _Status()
    if kept_out(labels) or not config.selects(labels):
        raise BadInput("the labels of its template exclude it from Lamina")
    if len(described) > MAX_GPUS:
        raise BadInput(f"its template describes more than {MAX_GPUS} GPUs; correct the label {GPU}.count there")
    native = _native_resources(labels, status.allocatable or status.capacity or {})
    gpus = [] if _divided_by_nvidia(labels) else described
    if not (gpus or native):
        raise BadInput(_NO_GPU)
    settings = config.for_node(name)
    offered = tuple(_offered(gpu, settings) for gpu in gpus if settings.offers(gpu.uuid, gpu.index))
    return Inventory(node=name, gpus=offered, native_resources=native)


def _divided_by_nvidia(labels: Mapping[str, str]) -> bool:
    """Whether the GPUs are offered as replicas or MIG devices, so that none is left for shares."""
    strategy = labels.get(f"{GPU}.sharing-strategy", Strategy.NONE)
    whole = labels.get(f"{GPU}.replicas", "1") != "0" and "-MIG-" not in labels.get(f"{GPU}.product", "")
    return strategy != Strategy.NONE or not whole


def _native_resources(labels: Mapping[str, str], amounts: Mapping[str, str | int]) -> tuple[NativeResource, ...]:
    """The devices that kubelet will hand out by itself. The autoscaler counts them, as kube-scheduler does.

    A count of whole GPUs is one of tickets here, unless the labels say that they are divided.
    """
    names = native_resources(name for name, amount in amounts.items() if str(amount) != "0")
    return tuple(NativeResource(name, 1) for name in names if name != GPU or _divided_by_nvidia(labels))


def _offered(gpu: Gpu, settings: NodeSettings) -> Gpu:
    """The GPU as an agent with these settings would publish it. Raises BadInput for one of unknown memory."""
    try:
        known = card(gpu.model)
    except BadInput:
        known = None
    memory = settings.memory_mib(gpu.memory_mib or (known.memory_mib if known else None))
    if memory is None or not 0 < memory <= MAX_MIB:
        raise BadInput(_NO_MEMORY)
    partitionable = mig_card(known.pci_device) if known is not None and known.mig_capable else None
    return msgspec.structs.replace(
        gpu,
        model=known.name if known else gpu.model,
        memory_mib=memory,
        capacity_mib=settings.capacity_mib(memory),
        cores_capacity=settings.cores_capacity,
        slots=settings.slots,
        mig_capable=partitionable is not None,
        modes=settings.grant_modes(can_partition=partitionable is not None),
        mig_card=partitionable.model if partitionable else "",
    )
