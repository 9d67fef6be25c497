"""Bounded values in Inventory and Grant."""

from typing import Annotated, Literal

from msgspec import Meta

from lamina.model.quantities import MAX_MIB

Natural = Annotated[int, Meta(ge=0, le=MAX_MIB)]
Name = Annotated[str, Meta(max_length=253)]
Mode = Literal["whole", "quota", "timeslice", "mps", "mig"]
