"""The messages between the agent and the MPS service of its node: one request and one reply per connection, each a line
of JSON.

The service is replaced later than the agent, so both must understand the messages of earlier releases: fields are only
added, with defaults, and unknown ones are ignored.
"""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from lamina.ports.mps.protocol import Home

MAX_BYTES = 1 << 20
"""Of one message."""
SOCKET = Path("/run/nvidia/mps/lamina.sock")
"""Where the service listens."""


class MpsCall(StrEnum):
    START = "start"
    ASK = "ask"
    END = "end"


class Request(Struct, frozen=True, kw_only=True):
    """One call of the port to MPS. `command` is for `ask`."""

    call: MpsCall
    gpu: str
    root: str
    command: str = ""

    @property
    def home(self) -> Home:
        return Home(self.gpu, Path(self.root))


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`error` is a sentence, empty if the call succeeded; `hangs`: the daemon did not answer in time."""

    answer: str = ""
    error: str = ""
    hangs: bool = False
