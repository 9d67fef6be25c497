"""ResourceClaims that are prepared on a node, with what they hold of its GPUs.

kube-scheduler allocates claims, so no grant says what they have. The agent that prepares them publishes it.
"""

from typing import Annotated

from msgspec import Meta, Struct

from lamina.core.fields import Name, camel_case, means
from lamina.core.grants import MAX_CONTAINERS, ContainerGrant

MAX_CLAIMS = 1000
"""On one node."""


class HeldClaim(Struct, frozen=True, kw_only=True, rename=camel_case):
    """A ResourceClaim that is prepared on the node."""

    namespace: Annotated[Name, means("Namespace of the claim")]
    name: Annotated[Name, means("Name of the claim")]
    uid: Annotated[Name, means("UID of the claim")]
    requests: Annotated[
        tuple[ContainerGrant, ...],
        Meta(max_length=MAX_CONTAINERS),
        means("Requests, with what all their containers have together"),
    ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
