"""The MPS control daemon of one GPU, as its node publishes it."""

from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from lamina.core.fields import Name, Natural, camel_case, means


class MpsState(StrEnum):
    """How far a daemon is. Containers start on its GPU only while it is ready."""

    READY = "ready"
    STARTING = "starting"
    WAITING = "waiting"
    """The GPU is in use in another way, or with other limits; the reason says by what."""
    FAILED = "failed"
    """It could not be started, or has ended, and is tried again; the reason says why."""
    STOPPING = "stopping"


class MpsDaemon(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """The MPS control daemon of one GPU."""

    gpu: Annotated[Name, means("UUID of the GPU")]
    state: Annotated[MpsState, means("State of the daemon; containers start on its GPU only while it is ready")]
    reason: Annotated[str, means("Why the daemon is not ready; empty while it is")] = ""
    memory_mib: Annotated[Natural, means("Memory in MiB that each client may allocate")] = 0
    threads_percent: Annotated[Natural, means("Percent of the GPU's threads that each client may use")] = 0
    for_grants: Annotated[bool, means("Clients have grants, with limits of their own within those of the daemon")] = (
        False
    )

    @property
    def made(self) -> bool:
        """Whether anything of it may be there; else it is only wanted."""
        return self.memory_mib > 0

    @property
    def ready(self) -> bool:
        return self.state is MpsState.READY
