"""What NVIDIA's device plugin and GPU feature discovery say about the GPUs and MIG devices of a node.

With the strategy mixed each MIG profile has labels of its own, `nvidia.com/mig-1g.5gb.*`. With single, those of the one
profile replace `nvidia.com/gpu.*`, or say that the node's partitions do not fit this strategy.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamina.core.gpus import Gpu
from lamina.core.mig_devices import MIXED, PREFIX, SINGLE, MigDevice, profile_resource, single_strategy_problem
from lamina.core.quantities import parse_quantity
from lamina.core.sharing import GPU, Replicated, Strategy
from lamina.dialects.metadata import NodeFacts, label_value
from lamina.errors import BadInput


def read_node(node: Mapping[str, Any]) -> Iterator[Gpu]:
    """The GPUs by the plugin's count of GPUs or replicas and the feature discovery's labels."""
    status, labels = node.get("status") or {}, node["metadata"].get("labels") or {}
    offered = _offered(status.get("allocatable") or status.get("capacity") or {})
    replicas = max(1, int(labels.get(f"{GPU}.replicas") or 1))
    count = int(labels.get(f"{GPU}.count") or -(-offered // replicas))
    memory = int(labels.get(f"{GPU}.memory") or 0)
    for index in range(count):
        yield Gpu(
            uuid=f"{node['metadata']['name']}-{index}",
            index=index,
            model=str(labels.get(f"{GPU}.product") or "GPU").removesuffix("-SHARED"),
            memory_mib=memory,
            capacity_mib=memory,
        )


def _offered(amounts: Mapping[str, Any]) -> int:
    """How many devices the node offers. Raises BadInput for what is not a whole number."""
    count = parse_quantity(amounts.get(GPU, 0), where=f"the amount of {GPU}").whole
    if count is None:
        raise BadInput(f"the amount of {GPU} must be a whole number, got {amounts[GPU]!r}")
    return count


OF_DEVICES = ("multiprocessors", "slices.gi", "slices.ci", "engines.copy", "engines.decoder", "engines.encoder",
               "engines.jpeg", "engines.ofa")  # fmt: skip
"""Labels of MIG devices in addition to product, count, replicas, sharing-strategy and memory."""
OF_PROFILES = ("product", "count", "replicas", "sharing-strategy", "memory", *OF_DEVICES)
"""The labels of each profile, after the name of its resource."""
_PROFILE = re.compile(
    rf"{re.escape(PREFIX)}[0-9]+g\.[0-9]+gb([-.][a-z.]+?)?\.({'|'.join(map(re.escape, OF_PROFILES))})"
)


def is_profile_label(name: str) -> bool:
    """Whether a label belongs to a MIG profile."""
    return _PROFILE.fullmatch(name) is not None


def labels(node: NodeFacts) -> dict[str, str]:
    """The labels that the strategy adds to those of whole GPUs, or replaces them with."""
    if node.mig_strategy == SINGLE and single_strategy_problem(node.gpus, node.mig_devices):
        zeros = dict.fromkeys(("count", "replicas", "memory"), "0")
        partitioned = next(gpu for gpu in node.gpus if gpu.mig_enabled)
        return _named(GPU, zeros | {"product": label_value(partitioned.name, "-MIG-INVALID")})
    if node.mig_strategy not in (SINGLE, MIXED):
        return {}
    products = {gpu.uuid: gpu.name for gpu in node.gpus}
    found: dict[str, list[MigDevice]] = {}
    for each in node.mig_devices:
        if each.gpu in products:
            name = GPU if node.mig_strategy == SINGLE else profile_resource(each.profile.name)
            found.setdefault(name, []).append(each)
    return {
        label: text
        for name, devices in found.items()
        for label, text in _named(
            name, _of_profile(devices, products[devices[0].gpu], node.sharing.of(name), node.sharing.strategy)
        ).items()
    }


def _of_profile(devices: Sequence[MigDevice], product: str, offered: Replicated, strategy: Strategy) -> dict[str, str]:
    """The labels of MIG devices of one profile, without those that the driver does not report."""
    profile, replicated = devices[0].profile, offered.replicas > 1
    engines = profile.engines
    suffix = "-SHARED" if replicated and not offered.renamed else ""
    numbers = {
        "count": len(devices),
        "replicas": offered.replicas,
        "memory": profile.memory_mib,
        "multiprocessors": profile.sms,
        "slices.gi": profile.slices,
        "slices.ci": profile.slices,
        "engines.copy": engines.copy,
        "engines.decoder": engines.decoders,
        "engines.encoder": engines.encoders,
        "engines.jpeg": engines.jpeg,
        "engines.ofa": engines.ofa,
    }
    return {name: str(number) for name, number in numbers.items() if number is not None} | {
        "product": label_value(product, f"-MIG-{label_value(profile.name)}{suffix}"),
        "sharing-strategy": strategy.value if replicated else Strategy.NONE.value,
    }


def _named(resource: str, texts: dict[str, str]) -> dict[str, str]:
    return {f"{resource}.{name}": text for name, text in texts.items()}
