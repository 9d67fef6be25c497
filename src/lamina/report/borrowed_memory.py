"""What is lent of the memory of GPUs: how far limits go beyond what is guaranteed, and how much is borrowed."""

from collections.abc import Iterable

from msgspec import structs

from lamina.core.grants import ContainerGrant
from lamina.core.ledger import taken_by
from lamina.report.cluster_use import ClusterUse


def lendable_mib(pods: Iterable[tuple[ContainerGrant, ...]]) -> dict[str, int]:
    """By GPU, what the containers of these pods may hold beyond their requests, counted as requests are."""
    found: dict[str, int] = {}
    for containers in pods:
        shares = [share for container in containers for share in container.shares]
        if all(share.limit_mib == share.memory_mib for share in shares):
            continue
        requested = taken_by(containers)
        for gpu, taken in taken_by(map(_at_limit, containers)).items():
            found[gpu] = found.get(gpu, 0) + taken.memory_mib - requested[gpu].memory_mib
    return found


def borrowed_mib(use: ClusterUse) -> dict[str, int]:
    """By GPU, what containers hold beyond their requests. GPUs of which no container is reported are left out."""
    found: dict[str, int] = {}
    for shares in use.shares.values():
        for gpu, share in shares.items():
            found[gpu] = found.get(gpu, 0) + share.borrowed_mib
    return found


def _at_limit(container: ContainerGrant) -> ContainerGrant:
    shares = tuple(structs.replace(share, memory_mib=share.limit_mib) for share in container.shares)
    return structs.replace(container, shares=shares)
