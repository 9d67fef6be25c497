"""What `lamina doctor` tells of one thing that it looked at."""

from enum import StrEnum

from msgspec import Struct


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(Struct, frozen=True):
    """`mend` is empty where there is nothing to do."""

    what: str
    state: State
    found: str
    mend: str = ""
