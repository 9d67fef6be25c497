"""What pods hold by ResourceClaims, and what is claimed of each GPU, as the agents publish it."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import structs

from lamina.core.gpus import Inventory
from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import Taken, taken_by_claims
from lamina.core.pod_status import is_over
from lamina.dra.containers import uses_by_container
from lamina.ports.kube import Object

_SHOWN = 5


def shares_by_claims(pod: Object, inventories: Mapping[str, Inventory]) -> list[Share]:
    """What the containers of a pod that is on a node hold by claims. Each request counts once."""
    return [share for request in requests_by_claims(pod, inventories) for share in request.shares]


def requests_by_claims(pod: Object, inventories: Mapping[str, Inventory]) -> list[ContainerGrant]:
    """The same by request, each named `<claim>/<request>`."""
    inventory = inventories.get(pod["spec"].get("nodeName") or "")
    if inventory is None or not inventory.claims or is_over(pod):
        return []
    named = {use for uses in uses_by_container(pod).values() for use in uses}
    return [
        structs.replace(request, name=f"{claim.name}/{request.name}")
        for claim in inventory.claims
        if claim.namespace == pod["metadata"]["namespace"]
        for request in claim.requests
        if named & {(claim.name, ""), (claim.name, request.name)}
    ]


def claimed(inventory: Inventory) -> dict[str, Taken]:
    """What claims hold of the GPUs of a node, by UUID."""
    return taken_by_claims(inventory.claims)


def lines(inventories: Mapping[str, Inventory], meaning: str = "") -> Iterator[str]:
    """What claims hold of GPUs, in sentences that end with what that means."""
    found = []
    for node in sorted(inventories):
        indices = {gpu.uuid: gpu.index for gpu in inventories[node].gpus}
        for claim in inventories[node].claims:
            taken = {uuid: held for uuid, held in taken_by_claims([claim]).items() if uuid in indices}
            gpus = " and ".join(str(indices[uuid]) for uuid in taken)
            memory_mib = sum(held.memory_mib for held in taken.values())
            if taken:
                found.append(f"ResourceClaim {claim} holds {memory_mib} MiB of GPU {gpus} of node {node}")
    yield from (f"  {sentence}{meaning}" for sentence in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield f"  {len(found) - _SHOWN} more ResourceClaims hold GPUs"


def granted_lines(inventories: Mapping[str, Inventory], taken: Callable[[str], Mapping[str, Taken]]) -> Iterator[str]:
    """The GPUs that claims do not get because pods have them by grants, in sentences. `taken` is what grants have."""
    found = []
    for node in sorted(inventories):
        held = taken(node)
        indices = sorted(gpu.index for gpu in inventories[node].gpus if gpu.uuid in held)
        if indices:
            found.append(
                f"  pods hold GPU {', '.join(map(str, indices))} of node {node} by grants, so no claim gets it"
            )
    yield from found[:_SHOWN]
    if len(found) > _SHOWN:
        yield f"  pods hold GPUs of {len(found) - _SHOWN} more nodes by grants"
