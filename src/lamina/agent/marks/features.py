"""The labels of NVIDIA's GPU feature discovery.

Values are GFD's. On a node with several models, GFD takes one at random; here it is the one of most GPUs, the first
of these by index, and the count is that of this model.

`nvidia.com/gpu.*` tell of whole GPUs, cut or not. With the strategy mixed each profile has labels of its own beside
these, `nvidia.com/mig-1g.5gb.*`; with single, those of the one profile there is take the place of `nvidia.com/gpu.*`.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from lamina.agent.marks import mig_features
from lamina.agent.marks.label_values import value
from lamina.agent.marks.mig_features import Mig
from lamina.model.gpus import Inventory
from lamina.model.sharing import SHARED
from lamina.ports.nvml import GpuFacts

PREFIX = "nvidia.com/"
_DRIVER = ("cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev",
           "cuda.driver-version.major", "cuda.driver-version.minor", "cuda.driver-version.revision",
           "cuda.driver-version.full", "cuda.runtime.major", "cuda.runtime.minor",
           "cuda.runtime-version.major", "cuda.runtime-version.minor", "cuda.runtime-version.full")  # fmt: skip
_GPU = ("gpu.clique", "gpu.compute.major", "gpu.compute.minor", "gpu.count", "gpu.family", "gpu.machine",
        "gpu.memory", "gpu.mode", "gpu.product", "gpu.replicas", "gpu.sharing-strategy",
        *(f"gpu.{name}" for name in mig_features.OF_DEVICES),
        "mig.capable", "mig.strategy", "mps.capable", "vgpu.present")  # fmt: skip
TIMESTAMP = PREFIX + "gfd.timestamp"
"""When the labels last changed, in Unix time."""
LABELS = frozenset({*(PREFIX + name for name in (*_DRIVER, *_GPU)), TIMESTAMP})
"""Every label that is kept here, beside those of MIG profiles."""

_FAMILIES = (
    ((13, 0), "rubin"), ((10, 0), "blackwell"), ((9, 0), "hopper"), ((8, 9), "ada-lovelace"), ((8, 0), "ampere"),
    ((7, 5), "turing"), ((7, 0), "volta"), ((6, 0), "pascal"), ((5, 0), "maxwell"), ((3, 0), "kepler"),
    ((2, 0), "fermi"), ((1, 0), "tesla"),
)  # fmt: skip
_MODES = {(3, 0): "graphics", (3, 2): "compute"}


class System(NamedTuple):
    """What is not a GPU's: the driver's version, CUDA's as (major, minor), and the machine's name."""

    driver: str
    cuda: tuple[int, int]
    machine: str = ""


class Sharing(NamedTuple):
    """How kubelet gives out a whole GPU without grants. `renamed`: under a name of its own."""

    strategy: Literal["none", "time-slicing", "mps"] = "none"
    replicas: int = 1
    renamed: bool = False


def kept(name: str) -> bool:
    """Whether a label is kept here."""
    return name in LABELS or mig_features.kept(name)


def sharing(inventory: Inventory) -> Sharing:
    """How the node shares GPUs outside of grants. Grants are not a sharing of GFD's."""
    for offered in inventory.plain:
        if offered.replicas > 1 and any(gpu.plain == offered.resource for gpu in inventory.gpus):
            return Sharing(offered.sharing.value, offered.replicas, offered.resource.endswith(SHARED))
    return Sharing()


def labels(facts: Sequence[GpuFacts], system: System, shared: Sharing, mig: Mig = Mig()) -> dict[str, str]:  # noqa: B008
    """The labels of a node with these GPUs, without the timestamp; none without GPUs. GPUs that are not cut are
    `shared`."""
    if not facts:
        return {}
    models = [one.name for one in facts]
    gpu = next(one for one in facts if models.count(one.name) == max(map(models.count, models)))
    if all(one.mig_enabled for one in facts if one.name == gpu.name):
        shared = Sharing(replicas=0)
    major, minor = gpu.compute or (0, 0)
    suffix = "-SHARED" if shared.strategy != "none" and not shared.renamed else ""
    found = _versions(system) | {
        "gpu.compute.major": str(major),
        "gpu.compute.minor": str(minor),
        "gpu.count": str(models.count(gpu.name)),
        "gpu.family": next((name for least, name in _FAMILIES if (major, minor) >= least), "undefined"),
        "gpu.machine": value(system.machine) or "unknown",
        "gpu.memory": str(gpu.memory_mib or 0),
        "gpu.mode": _MODES.get(gpu.pci_class or (0, 0), "unknown"),
        "gpu.product": value(gpu.name, suffix),
        "gpu.replicas": str(shared.replicas),
        "gpu.sharing-strategy": shared.strategy,
        "mig.capable": _yes(any(one.mig_capable for one in facts)),
        "mps.capable": _yes(shared.strategy == "mps"),
        "vgpu.present": _yes(any(one.virtual for one in facts)),
    }
    if mig.strategy != "none":
        found["mig.strategy"] = mig.strategy
    cliques = {one.fabric for one in facts if one.fabric}
    if len(cliques) == 1:
        found["gpu.clique"] = cliques.pop()
    return {PREFIX + name: value for name, value in found.items()} | mig_features.labels(facts, mig)


def _versions(system: System) -> dict[str, str]:
    driver_major, driver_minor, revision, *_ = (*system.driver.split("."), "", "", "")
    cuda_major, cuda_minor = map(str, system.cuda)
    return {
        "cuda.driver.major": driver_major,
        "cuda.driver.minor": driver_minor,
        "cuda.driver.rev": revision,
        "cuda.driver-version.major": driver_major,
        "cuda.driver-version.minor": driver_minor,
        "cuda.driver-version.revision": revision,
        "cuda.driver-version.full": system.driver,
        "cuda.runtime.major": cuda_major,
        "cuda.runtime.minor": cuda_minor,
        "cuda.runtime-version.major": cuda_major,
        "cuda.runtime-version.minor": cuda_minor,
        "cuda.runtime-version.full": f"{cuda_major}.{cuda_minor}",
    }


def _yes(what: bool) -> str:
    return "true" if what else "false"
