"""The MPS control daemon of one GPU, as its node publishes it."""

from enum import StrEnum

from msgspec import Struct


class MpsState(StrEnum):
    """How far a daemon is. Containers start on its GPU only while it is ready."""

    READY = "ready"
    STARTING = "starting"
    WAITING = "waiting"
    """The GPU is in use in another way, or with other limits; the reason says by what."""
    FAILED = "failed"
    """It could not be started, or has ended, and is tried again; the reason says why."""
    STOPPING = "stopping"


class MpsDaemon(Struct, frozen=True, kw_only=True):
    """`gpu` is a UUID. Each process that is a client may hold `memory_mib` and use `threads_percent` of the GPU."""

    gpu: str
    state: MpsState
    reason: str = ""
    """Why it is not ready; empty while it is."""
    memory_mib: int = 0
    threads_percent: int = 0
    for_grants: bool = False
    """Its clients have grants, each with limits of its own; the figures here are those of the whole GPU."""

    @property
    def made(self) -> bool:
        """Whether anything of it may be there; else it is only wanted."""
        return self.memory_mib > 0

    @property
    def ready(self) -> bool:
        return self.state is MpsState.READY
