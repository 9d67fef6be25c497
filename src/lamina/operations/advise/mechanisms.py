"""The ways to let several programs use one GPU, how they compare, and which one suits a workload.

The comparison is Table 1 of NVIDIA's "Improving GPU Utilization in Kubernetes", with a column for shares held by
Lamina's quotas added. The choice follows from six questions, the hardest need first.
"""

from enum import StrEnum

from msgspec import Struct

from lamina.core.mig_cards import MIG_CARDS


class Mechanism(StrEnum):
    STREAMS = "streams"
    QUOTA = "quota"
    MPS = "MPS"
    TIME_SLICING = "time-slicing"
    MIG = "MIG"
    VGPU = "vGPU"
    WHOLE = "whole GPU"


TABLE: dict[str, dict[Mechanism, str]] = {
    row: dict(zip(
        (Mechanism.STREAMS, Mechanism.MPS, Mechanism.TIME_SLICING, Mechanism.MIG, Mechanism.VGPU, Mechanism.QUOTA),
        cells, strict=True,
    ))
    for row, cells in {
        "Partition type": ("single process", "logical", "temporal (single process)", "physical",
                           "temporal and physical, VMs", "temporal, limits per container"),
        "Max partitions": ("unlimited", "48", "unlimited", "7", "variable", "slots of the configuration, 10"),
        "SM performance isolation": ("no", "yes, by percentage, not partitioning", "yes", "yes", "yes",
                                     "yes, by percentage of time"),
        "Memory protection": ("no", "yes", "yes", "yes", "yes", "yes, with a limit for each container"),
        "Memory bandwidth QoS": ("no", "no", "no", "yes", "yes", "no"),
        "Error isolation": ("no", "no", "yes", "yes", "yes", "yes"),
        "Cross-partition interop": ("always", "IPC", "limited IPC", "limited IPC", "no", "IPC in a container"),
        "Reconfigure": ("dynamic", "at process launch", "n/a", "when idle", "n/a", "with each pod"),
        "GPU management (telemetry)": ("n/a", "limited", "n/a", "yes, containers too", "yes, and live migration",
                                       "yes, for each container"),
        "Target use cases": (
            "concurrency in one application",
            "applications side by side that bear limited resiliency",
            "applications that are not latency-sensitive or bear jitter",
            "applications side by side that need resiliency and QoS",
            "tenants that need virtual machines",
            "applications side by side with known needs of memory and time",
        ),
    }.items()
}  # fmt: skip
"""By row, then by mechanism."""


class Needs(Struct, frozen=True, kw_only=True):
    """What a workload needs. `memory_mib` 0 is the whole of a GPU, `cores` 0 is whatever is left of its time."""

    one_program: bool = False
    """Only one program is to use the GPU, with work that runs side by side in it."""
    virtual_machines: bool = False
    renders: bool = False
    """It draws with Vulkan or OpenGL, whose memory no limit of a share counts."""
    hardware: bool = False
    """Tenants who do not trust each other, or latency that neighbors must not affect: hardware isolation."""
    card: str = ""
    """The model of a card that MIG divides, as `MIG_CARDS` names it; empty where the cluster has none."""
    memory_mib: int = 0
    cores: int = 0
    concurrent: bool = False
    """Many small kernels that should run at the same time, of programs that trust each other."""
    unknown: bool = False
    """It is unknown how much memory it needs, and its neighbors are trusted."""


class Advice(Struct, frozen=True, kw_only=True):
    """A mechanism and why. `limits` are those of a pod's container; empty where no pod asks for it that way."""

    mechanism: Mechanism
    reason: str
    limits: dict[str, str | int] = {}
    before: str = ""
    """What has to be done on the cluster first."""


def advise(needs: Needs) -> Advice:
    """The mechanism that meets the needs with the least that it costs."""
    memory: dict[str, str | int] = {"nvidia.com/gpumem": needs.memory_mib} if needs.memory_mib else {}
    cores: dict[str, str | int] = {"nvidia.com/gpucores": needs.cores} if needs.cores else {}
    if needs.virtual_machines:
        return Advice(
            mechanism=Mechanism.VGPU,
            reason="virtual machines get parts of GPUs from the hypervisor, which Lamina does not do",
            before="license NVIDIA vGPU and set it up on the hypervisor",
        )
    if needs.one_program:
        return Advice(
            mechanism=Mechanism.STREAMS,
            reason="one program needs no division: its own CUDA streams run side by side, and it has the GPU to itself",
            limits={"nvidia.com/gpu": 1},
        )
    if needs.renders:
        return Advice(
            mechanism=Mechanism.WHOLE,
            reason="memory that Vulkan and OpenGL take is not counted, so no share would limit it",
            limits={"nvidia.com/gpu": 1},
        )
    if needs.hardware:
        return _by_hardware(needs)
    if needs.concurrent:
        return Advice(
            mechanism=Mechanism.MPS,
            reason="MPS runs kernels of several programs at the same time; a fault of one may end the others",
            limits={"nvidia.com/gpu": 1},
            before="share nvidia.com/gpu by `sharing.mps` in NVIDIA's configuration of the node",
        )
    if needs.unknown:
        return Advice(
            mechanism=Mechanism.TIME_SLICING,
            reason="nothing is held, so nothing has to be known; one program can take all of the memory",
            limits={"nvidia.com/gpu": 1},
            before="share nvidia.com/gpu by `sharing.timeSlicing` in NVIDIA's configuration of the node",
        )
    return Advice(
        mechanism=Mechanism.QUOTA,
        reason="memory and time are known, and each container is held to them on any card",
        limits={"nvidia.com/gpu": 1} | memory | cores,
    )


def _by_hardware(needs: Needs) -> Advice:
    """The smallest profile of the card that holds the memory, or a GPU of its own."""
    card = MIG_CARDS.get(needs.card)
    fitting = [p for p in card.profiles if p.base and p.holds_mib >= needs.memory_mib] if card else []
    if not fitting:
        lacking = (
            f"no profile of {needs.card} holds {needs.memory_mib} MiB" if card else "the cluster has no card with MIG"
        )
        return Advice(
            mechanism=Mechanism.WHOLE,
            reason=f"{lacking}, so only a whole GPU isolates it from neighbors",
            limits={"nvidia.com/gpu": 1},
        )
    profile = min(fitting, key=lambda each: (each.holds_mib, each.slices))
    return Advice(
        mechanism=Mechanism.MIG,
        reason=f"only MIG divides bandwidth, caches and faults in hardware; {profile.name} is the smallest to do",
        limits={f"nvidia.com/mig-{profile.name}": 1},
        before=(
            "set the MIG strategy to mixed (hami.migStrategy, or mig.strategy in Lamina's own form) in the "
            "ConfigMap lamina of Lamina's namespace; then partition the GPUs of a node: "
            "kubectl label node NODE "
            f"nvidia.com/mig.config=all-{profile.name}"
        ),
    )
