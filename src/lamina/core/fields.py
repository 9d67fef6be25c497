"""How the fields of Lamina's objects are written: names, bounds and descriptions.

The types of `lamina.core` that stand in Inventory and Grant objects are what the API server stores. One compromised
node must not stop the controller, which computes with arrays of integers and keeps a cell for every GPU of the largest
node for each node, so numbers, names and lists are bounded.
"""

from typing import Annotated

from msgspec import Meta

from lamina.core.quantities import MAX_MIB

MAX_INVENTORY_GPUS = 128
MAX_LIST = 10_000

Natural = Annotated[int, Meta(ge=0, le=MAX_MIB)]
Name = Annotated[str, Meta(max_length=253)]
Moment = Annotated[int, Meta(ge=0, le=1 << 40)]
"""A moment in seconds since 1970."""
UpToGpus = Meta(max_length=MAX_INVENTORY_GPUS)
UpToMany = Meta(max_length=MAX_LIST)

_SPELLED = {"mib": "MiB", "uid": "UID"}


def camel_case(name: str) -> str:
    """The name of a field as it is written: memory_mib is memoryMiB, and pod_uid is podUID."""
    first, *rest = name.split("_")
    return first + "".join(_SPELLED.get(word) or word.capitalize() for word in rest)


def means(description: str) -> Meta:
    """What a field means, for the schema and for people."""
    return Meta(description=description)
