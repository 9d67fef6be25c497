"""How one GPU is divided, and the instances of a GPU that MIG divides."""

from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from lamina.core.fields import Name, Natural, means


class Mode(StrEnum):
    """How one GPU is divided at a time. An idle GPU may change its mode, a busy one may not."""

    WHOLE = "whole"
    QUOTA = "quota"
    TIMESLICE = "timeslice"
    MPS = "mps"
    MIG = "mig"


class MigInstance(Struct, frozen=True, kw_only=True):
    """The place of a MIG instance on its GPU."""

    profile: Annotated[Name, means("MIG profile, such as 1g.5gb")]
    start: Annotated[Natural, means("Memory slice at which the instance begins")]
