"""From the devices of a claim to what its containers may use, and whether a device has room for it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, MigInstance, Share
from lamina.dra.claims import AllocatedClaim, ClaimedDevice
from lamina.dra.offers import OfferedDevice
from lamina.errors import BadInput, NotYet


class RequestShares(Struct, frozen=True, kw_only=True):
    """What each container that names a request has. `limited`: the facade holds the limits; otherwise the device does.

    `admin`: the devices are accessible, and nothing is taken from them. `first`: their work comes first on it.
    """

    shares: tuple[Share, ...]
    limited: bool = False
    admin: bool = False
    first: bool = False


def request_shares(claim: AllocatedClaim, offered: Mapping[str, OfferedDevice]) -> dict[str, RequestShares]:
    """The shares by request. `offered` are the devices of the node by name. Raises NotYet for one that is missing."""
    return {request: _request(request, devices, offered, claim) for request, devices in claim.requests.items()}


def _request(
    request: str, devices: Sequence[ClaimedDevice], offered: Mapping[str, OfferedDevice], claim: AllocatedClaim
) -> RequestShares:
    shares: dict[str, Share] = {}
    for device in devices:
        known = offered.get(device.device)
        if known is None:
            raise NotYet(
                f"claim {claim.namespace}/{claim.name} has the device {device.device}, which this node does not have "
                "now; recreate the claim if it does not come back"
            )
        if device.admin and known.place is not None:
            raise BadInput(
                f"request {request}: {device.device} exists only while a claim has it, so it cannot have adminAccess; "
                "request the GPU"
            )
        share = _share(device, known)
        shares[known.name] = _sum(shares[known.name], share, known) if known.name in shares else share
    return RequestShares(
        shares=tuple(shares.values()),
        limited=any(share.mode is Mode.QUOTA for share in shares.values()),
        admin=all(device.admin for device in devices),
    )


def _share(device: ClaimedDevice, known: OfferedDevice) -> Share:
    """A device that is taken whole needs no limits."""
    memory = known.memory_mib if device.memory_mib is None else min(device.memory_mib, known.memory_mib)
    if known.kind == "mig":
        return Share(gpu=known.uuid, memory_mib=known.memory_mib, mode=Mode.MIG, mig=known.place)
    if memory == known.memory_mib and device.cores in (0, 100):
        return Share(gpu=known.uuid, memory_mib=memory, mode=Mode.WHOLE)
    policy = ComputePolicy.CAP if device.cores else ComputePolicy.NONE
    return Share(gpu=known.uuid, memory_mib=memory, cores=device.cores, compute_policy=policy)


def _sum(one: Share, other: Share, known: OfferedDevice) -> Share:
    """Two shares of one device by one request, of which each container has both."""
    memory = min(one.memory_mib + other.memory_mib, known.memory_mib)
    cores = min(one.cores + other.cores, 100) if one.cores and other.cores else 0
    return _share(ClaimedDevice(request="", device="", pool="", memory_mib=memory, cores=cores), known)


def together(shares: Iterable[Share]) -> tuple[Share, ...]:
    """One share for each device, with all that these have of it. Where one of them has no cap on compute, none has.
    Idle time is lent up to the sum of their limits."""
    found: dict[tuple[str, MigInstance | None], Share] = {}
    for share in shares:
        device = (share.gpu, share.mig)
        found[device] = _both(found[device], share) if device in found else share
    return tuple(found.values())


def _both(one: Share, other: Share) -> Share:
    memory, limit = one.memory_mib + other.memory_mib, one.limit_mib + other.limit_mib
    capped = bool(one.cores and other.cores)
    cores = min(one.cores + other.cores, 100) if capped else 0
    most = min((one.most_cores or one.cores) + (other.most_cores or other.cores), 100) if capped else 0
    policy = ComputePolicy.WEIGHT if most > cores else ComputePolicy.CAP
    return structs.replace(
        one,
        memory_mib=memory,
        most_memory_mib=limit if limit > memory else 0,
        cores=cores,
        most_cores=most if most > cores else 0,
        compute_policy=policy if capped else ComputePolicy.NONE,
    )


def require_room(
    wanted: Iterable[Share], held: Mapping[str, Sequence[Share]], offered: Iterable[OfferedDevice]
) -> None:
    """Raises NotYet if the devices do not have what is wanted in addition to what other claims hold, and BadInput if a
    device does not have it at all.

    `held` are the shares by claim. Kubelet may prepare a claim before it unprepares one whose pod has ended.
    """
    devices = list(offered)
    mine: dict[str, list[Share]] = {}
    for share in wanted:
        mine.setdefault(share.gpu, []).append(share)
    for uuid, shares in mine.items():
        others = {claim: [each for each in all_of if each.gpu == uuid] for claim, all_of in held.items()}
        theirs = [each for listed in others.values() for each in listed]
        device = next(each for each in devices if each.uuid == uuid and each.place == shares[0].mig)
        if _fit(shares, theirs, device, {each.place: each for each in devices if each.gpu == uuid}):
            continue
        if not theirs:
            raise BadInput(f"the requests of the claim add up to more than {device.name} has; recreate the claim")
        holders = ", ".join(sorted(claim for claim, listed in others.items() if listed))
        raise NotYet(f"{device.name} has no room for the claim as long as it is prepared for {holders}")


def _fit(
    mine: Sequence[Share],
    theirs: Sequence[Share],
    device: OfferedDevice,
    places: Mapping[MigInstance | None, OfferedDevice],
) -> bool:
    """Whether both are possible at the same time on one device. `places` are those of its GPU."""
    everything = [*mine, *theirs]
    if any(share.mig for share in everything):
        return all(_apart(one.mig, other.mig, places) for one in mine for other in theirs)
    memory, cores = sum(each.memory_mib for each in everything), sum(each.cores for each in everything)
    return memory <= device.memory_mib and cores <= 100


def _apart(
    one: MigInstance | None, other: MigInstance | None, places: Mapping[MigInstance | None, OfferedDevice]
) -> bool:
    """Whether two MIG devices of a GPU can exist together. One that is not offered any more is tried by the agent."""
    if one is None or other is None or one == other:
        return False
    ends = [each.start + places[each].size if each in places else each.start + 1 for each in (one, other)]
    return one.start >= ends[1] or other.start >= ends[0]
