"""What must be true of ResourceClaims on a node, compared as plain data. `invariants` has the rest.

`prepared` are the claims in the agent's record. `reserved` are those of the API server: their UIDs, with the UIDs of
the pods for which they are reserved.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from lamina.agent.containers.paths import pod_uid_of
from lamina.agent.state.holdings import Instance, PreparedClaim, instance_of
from lamina.core.gpus import Gpu

Reserved = Mapping[str, frozenset[str]]


def too_much(prepared: Iterable[PreparedClaim], gpus: Iterable[Gpu], by_plugin: Collection[str]) -> Iterator[str]:
    """What must never be seen. `by_plugin` are the GPUs that containers have by a device plugin."""
    memory: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    for claim in prepared:
        for share in claim.shares:
            memory[share.gpu] += share.memory_mib
            cores[share.gpu] += share.cores
    for gpu in gpus:
        if memory[gpu.uuid] > gpu.memory_mib:
            yield f"claims have {memory[gpu.uuid]} MiB of {gpu.uuid}, which has {gpu.memory_mib}"
        if cores[gpu.uuid] > 100:
            yield f"claims have {cores[gpu.uuid]} percent of {gpu.uuid}"
        if memory[gpu.uuid] and gpu.uuid in by_plugin:
            yield f"{gpu.uuid} is in use by claims and by a device plugin"


def gone(prepared: Iterable[PreparedClaim], reserved: Reserved) -> Iterator[tuple[str, str]]:
    """Claims that the record keeps and Kubernetes does not, each with what it is about."""
    for claim in prepared:
        if claim.uid not in reserved:
            yield f"claim {claim.uid}", f"the record keeps the claim {claim} ({claim.uid}), which is gone"
        elif not reserved[claim.uid]:
            yield f"claim {claim.uid}", f"the record keeps the claim {claim}, which no pod has"


def explains(
    prepared: Iterable[PreparedClaim],
    reserved: Reserved,
    pod: str,
    visible: Iterable[str],
    instances: Mapping[str, Instance],
) -> bool:
    """Whether the pod has a prepared claim for each of these devices. `instances` are the places of MIG devices."""
    mine = [claim for claim in prepared if pod in reserved.get(claim.uid, ()) or pod in claim.pods]
    units = {
        instance_of(share) or share.gpu for claim in mine for each in claim.requests for share in each.grant.shares
    }
    return bool(mine) and units >= {instances.get(device, device) for device in visible}


def places(prepared: Iterable[PreparedClaim]) -> set[Instance]:
    """The MIG instances that claims have."""
    return {each for claim in prepared for share in claim.shares if (each := instance_of(share)) is not None}


def owns(prepared: Iterable[PreparedClaim], folder: str) -> bool:
    """Whether a directory of a container is one of these claims'."""
    return pod_uid_of(folder) in {claim.uid for claim in prepared}
