"""The labels of NVIDIA's GPU feature discovery.

The values are those of GFD. On a node with several models, GFD describes a random one; Lamina describes the one with
the most GPUs, the first of these by index, and counts only this model.

`nvidia.com/gpu.*` describe whole GPUs, partitioned or not. With the strategy mixed each profile has labels of its own
as well, `nvidia.com/mig-1g.5gb.*`; with single, the labels of the only profile replace `nvidia.com/gpu.*`.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from lamina.core.gpus import Inventory
from lamina.core.mig_devices import NONE
from lamina.core.sharing import SHARED
from lamina.dialects.metadata import NodeFacts, label_value
from lamina.dialects.nvidia import node_gpus

PREFIX = "nvidia.com/"
NFD_ANNOTATION = "nfd.node.kubernetes.io/feature-labels"
_DRIVER = ("cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev",
           "cuda.driver-version.major", "cuda.driver-version.minor", "cuda.driver-version.revision",
           "cuda.driver-version.full", "cuda.runtime.major", "cuda.runtime.minor",
           "cuda.runtime-version.major", "cuda.runtime-version.minor", "cuda.runtime-version.full")  # fmt: skip
_GPU = ("gpu.clique", "gpu.compute.major", "gpu.compute.minor", "gpu.count", "gpu.family", "gpu.machine",
        "gpu.memory", "gpu.mode", "gpu.product", "gpu.replicas", "gpu.sharing-strategy",
        *(f"gpu.{name}" for name in node_gpus.OF_DEVICES),
        "mig.capable", "mig.strategy", "mps.capable", "vgpu.present")  # fmt: skip
TIMESTAMP = PREFIX + "gfd.timestamp"
"""When the labels last changed, in Unix time."""
LABELS = frozenset({*(PREFIX + name for name in (*_DRIVER, *_GPU)), TIMESTAMP})
"""All labels except those of MIG profiles."""

_FAMILIES = (
    ((13, 0), "rubin"), ((10, 0), "blackwell"), ((9, 0), "hopper"), ((8, 9), "ada-lovelace"), ((8, 0), "ampere"),
    ((7, 5), "turing"), ((7, 0), "volta"), ((6, 0), "pascal"), ((5, 0), "maxwell"), ((3, 0), "kepler"),
    ((2, 0), "fermi"), ((1, 0), "tesla"),
)  # fmt: skip
_MODES = {(3, 0): "graphics", (3, 2): "compute"}


class GpuSharing(NamedTuple):
    """How native devices share a whole GPU. `renamed`: their resource has a name of its own."""

    strategy: Literal["none", "time-slicing", "mps"] = "none"
    replicas: int = 1
    renamed: bool = False


def is_feature_label(key: str) -> bool:
    """Whether a label is one of these or of a MIG profile."""
    return key in LABELS or node_gpus.is_profile_label(key)


def labels_of_discovery(annotations: Mapping[str, str]) -> frozenset[str]:
    """The labels that node feature discovery lists as its own, including those of GFD."""
    return frozenset(filter(None, annotations.get(NFD_ANNOTATION, "").split(",")))


def gpu_sharing(inventory: Inventory) -> GpuSharing:
    """How the node shares GPUs as native devices. Grants do not count as sharing for GFD."""
    for offered in inventory.native_resources:
        if offered.replicas > 1 and any(gpu.native_resource == offered.resource for gpu in inventory.gpus):
            return GpuSharing(offered.sharing.value, offered.replicas, offered.resource.endswith(SHARED))
    return GpuSharing()


def labels(node: NodeFacts) -> dict[str, str]:
    """The labels of a node, without the timestamp; none where it has no GPU."""
    if not node.gpus:
        return {}
    models = [one.name for one in node.gpus]
    gpu = next(one for one in node.gpus if models.count(one.name) == max(map(models.count, models)))
    shared = gpu_sharing(node.inventory)
    if all(one.mig_enabled for one in node.gpus if one.name == gpu.name):
        shared = GpuSharing(replicas=0)
    major, minor = gpu.compute or (0, 0)
    suffix = "-SHARED" if shared.strategy != "none" and not shared.renamed else ""
    found = _versions(node.inventory.driver, node.cuda) | {
        "gpu.compute.major": str(major),
        "gpu.compute.minor": str(minor),
        "gpu.count": str(models.count(gpu.name)),
        "gpu.family": next((name for least, name in _FAMILIES if (major, minor) >= least), "undefined"),
        "gpu.machine": label_value(node.machine) or "unknown",
        "gpu.memory": str(gpu.memory_mib or 0),
        "gpu.mode": _MODES.get(gpu.pci_class or (0, 0), "unknown"),
        "gpu.product": label_value(gpu.name, suffix),
        "gpu.replicas": str(shared.replicas),
        "gpu.sharing-strategy": shared.strategy,
        "mig.capable": _yes(any(one.mig_capable for one in node.gpus)),
        "mps.capable": _yes(shared.strategy == "mps"),
        "vgpu.present": _yes(any(one.virtual for one in node.gpus)),
    }
    if node.mig_strategy != NONE:
        found["mig.strategy"] = node.mig_strategy
    cliques = {one.fabric for one in node.gpus if one.fabric}
    if len(cliques) == 1:
        found["gpu.clique"] = cliques.pop()
    return {PREFIX + name: text for name, text in found.items()} | node_gpus.labels(node)


def _versions(driver: str, cuda: tuple[int, int]) -> dict[str, str]:
    driver_major, driver_minor, revision, *_ = (*driver.split("."), "", "", "")
    cuda_major, cuda_minor = map(str, cuda)
    return {
        "cuda.driver.major": driver_major,
        "cuda.driver.minor": driver_minor,
        "cuda.driver.rev": revision,
        "cuda.driver-version.major": driver_major,
        "cuda.driver-version.minor": driver_minor,
        "cuda.driver-version.revision": revision,
        "cuda.driver-version.full": driver,
        "cuda.runtime.major": cuda_major,
        "cuda.runtime.minor": cuda_minor,
        "cuda.runtime-version.major": cuda_major,
        "cuda.runtime-version.minor": cuda_minor,
        "cuda.runtime-version.full": f"{cuda_major}.{cuda_minor}",
    }


def _yes(what: bool) -> str:
    return "true" if what else "false"
