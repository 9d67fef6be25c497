"""How one GPU is divided, and the instances of a GPU that MIG divides."""

from enum import StrEnum

from msgspec import Struct


class Mode(StrEnum):
    """How one GPU is divided at a time. An idle GPU may change its mode, a busy one may not."""

    WHOLE = "whole"
    QUOTA = "quota"
    TIMESLICE = "timeslice"
    MPS = "mps"
    MIG = "mig"


class MigInstance(Struct, frozen=True, kw_only=True):
    """A MIG instance of a GPU: its profile and the memory slice at which it begins."""

    profile: str
    start: int
