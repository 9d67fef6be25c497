"""The status of an Inventory: what is free on the node, and which of its survivors are confirmed.

Agents write the spec and do not know all grants, so the controller writes the status, by its own subresource.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from lamina.api.v1alpha1.bounds import Natural
from lamina.model.survivors import MAX_SURVIVORS


class InventoryStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Sums over the GPUs that take new shares: healthy, not cordoned, and shared by grants."""

    free_memory_mib: Annotated[Natural, Meta(description="Free memory of all such GPUs in MiB")] = field(
        name="freeMemoryMiB"
    )
    free_cores: Annotated[Natural, Meta(description="Free compute time of all such GPUs in percent of one GPU")]
    largest_free_mib: Annotated[
        Natural, Meta(description="Most memory in MiB that is free on one of these GPUs, so that one share can have it")
    ] = field(name="largestFreeMiB")
    survivors: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_SURVIVORS,
            description="Those of spec.survivors that had a grant on the node, as <namespace>/<UID>: they count in "
            "quotas of their namespaces too",
        ),
    ] = ()
