"""What `lamina doctor` found out about one thing."""

from enum import StrEnum

from msgspec import Struct


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(Struct, frozen=True):
    """The result of one check. `fix` is empty where there is nothing to do."""

    check: str
    state: State
    found: str
    fix: str = ""
