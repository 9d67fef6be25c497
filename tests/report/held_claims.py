"""ResourceClaims that a node's agent publishes as held."""

from msgspec import structs

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory, Mode
from lamina.core.grants import ContainerGrant, Share
from tests.worlds.clusters import inventory


def claim(name: str, *requests: tuple[str, int], cores: int = 0, namespace: str = "default", gpu: int = 0) -> HeldClaim:
    """Requests by name, each with a share of one GPU in MiB."""
    made = tuple(
        ContainerGrant(name=request, shares=(Share(gpu=f"GPU-n-{gpu}", memory_mib=memory, cores=cores),))
        for request, memory in requests
    )
    return HeldClaim(namespace=namespace, name=name, uid=f"uid-of-{name}", requests=made)


def holding(*claims: HeldClaim, gpus: int = 1) -> Inventory:
    """A node whose GPUs are in the mode that their agent gives those with claims."""
    node = inventory("n", gpus)
    held = {share.gpu for each in claims for request in each.requests for share in request.shares}
    listed = tuple(structs.replace(gpu, mode=Mode.TIMESLICE) if gpu.uuid in held else gpu for gpu in node.gpus)
    return structs.replace(node, gpus=listed, claims=claims)
