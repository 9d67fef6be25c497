"""ResourceClaims that are prepared on a node, with what they hold of its GPUs.

kube-scheduler allocates claims, so no grant says what they have. The agent that prepares them publishes it.
"""

from msgspec import Struct

from lamina.model.grants import ContainerGrant

MAX_CLAIMS = 1000
"""On one node."""


class HeldClaim(Struct, frozen=True, kw_only=True):
    """Such a claim. Each of `requests` has the shares of all containers that name it, which they have together."""

    namespace: str
    name: str
    uid: str
    requests: tuple[ContainerGrant, ...]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
