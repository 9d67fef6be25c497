"""What can be asked of NVML. Every call may raise `Outside` with a sentence that names NVML's error."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from lamina.core.gpu_facts import GpuFacts as GpuFacts
from lamina.core.gpu_facts import GpuReading as GpuReading
from lamina.core.gpu_facts import MigAttributes as MigAttributes
from lamina.core.gpu_facts import MigInstanceFacts as MigInstanceFacts
from lamina.core.mig import MigCard, Placed


class GpuProcess(NamedTuple):
    """A process with a context on a GPU; `memory_bytes` is None where the driver does not tell."""

    pid: int
    memory_bytes: int | None


class XidEvent(NamedTuple):
    """The driver reported an error. An empty `uuid` means that it could not say which GPU."""

    uuid: str
    xid: int


class Nvml(Protocol):
    """One node's NVML. A restarted driver is met again at the next call."""

    async def driver_version(self) -> str: ...

    async def cuda_version(self) -> tuple[int, int]:
        """The newest CUDA that the driver runs, such as (12, 4)."""
        ...

    async def gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that answer, by index. One that has fallen off the bus is missing."""
        ...

    async def readings(self) -> Mapping[str, GpuReading]:
        """What the GPUs that answer and their MIG devices say of themselves now, by UUID."""
        ...

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]: ...

    async def work(self, uuid: str) -> Mapping[int, float] | None:
        """For which part of the GPU's time each process worked in the last second or two, by pid.

        Processes that did not work are missing. None: the driver does not measure it on this GPU.
        """
        ...

    async def set_exclusive(self, uuid: str, on: bool) -> None:
        """Let one process at a time have contexts on the GPU, which is what MPS needs for its server; or any number.

        Nothing is written where that is so already.
        """
        ...

    async def limits_memory(self, uuid: str, cgroup: Path) -> bool:
        """Whether the driver itself can limit the memory of cgroups on a GPU; `cgroup` is any that exists."""
        ...

    async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
        """Hold a cgroup to so many bytes of a GPU; None ends that. Raises Outside unless the driver confirms it."""
        ...

    async def mig_card(self, uuid: str) -> MigCard:
        """What a GPU that is capable of MIG can be cut into."""
        ...

    async def mig_instances(self, uuid: str) -> tuple[MigInstanceFacts, ...]:
        """The instances of a GPU, by their ids; none while its MIG mode is off."""
        ...

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        """Ask for a mode. Whether it is in force now; else it is pending because the GPU is in use."""
        ...

    async def create_mig(self, uuid: str, place: Placed) -> MigInstanceFacts:
        """Create an instance at a placement. A process that is killed meanwhile may leave a half-made one."""
        ...

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        """Destroy an instance by its id, half made or whole; one that is gone is well. Raises Outside while in use."""
        ...

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        """The next critical error, or None when none came in time. Nothing is lost between two calls."""
        ...

    async def close(self) -> None: ...
