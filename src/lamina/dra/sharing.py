"""What the parameters of a request mean for the device that it has: the length of turns, or the limits of MPS."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lamina.core.gpus import Mode
from lamina.core.sharing import TimeSlice
from lamina.dra.claims import ClaimedDevice
from lamina.dra.combinations import Combination, RequestRef
from lamina.dra.offers import OfferedDevice
from lamina.dra.parameters import MpsParameters, SharingParameters
from lamina.dra.shares import RequestShares
from lamina.errors import BadInput


class RequestMps(Struct, frozen=True, kw_only=True):
    """The MPS daemon of a request. `gpu` is the UUID of its GPU or MIG device.

    Each client process may hold `memory_mib` and use `threads_percent`. `exclusive`: no other request has the GPU, so
    only clients of the daemon can use it.
    """

    gpu: str
    memory_mib: int
    threads_percent: int
    exclusive: bool = False


class RequestSharing(Struct, frozen=True):
    """What the agent does for a request. `interval` is None where the length of turns stays as it is."""

    interval: TimeSlice | None = None
    mps: RequestMps | None = None


def request_sharing(
    request: str,
    wanted: SharingParameters,
    shares: RequestShares,
    devices: Sequence[ClaimedDevice],
    known: Mapping[str, OfferedDevice],
) -> RequestSharing:
    """Raises BadInput for what its devices do not allow. `known` are the devices of the node by name."""
    if wanted == SharingParameters():
        return RequestSharing()
    if shares.admin:
        raise BadInput(f"request {request}: with adminAccess it cannot say how its devices are shared")
    if wanted.mps is not None:
        return RequestSharing(mps=_mps(request, wanted.mps, shares, [known[device.device] for device in devices]))
    if any(share.mode is not Mode.WHOLE for share in shares.shares):
        raise BadInput(
            f"request {request}: the interval {wanted.interval.capitalize()} would apply to all claims on the GPU; use "
            "Default, or request a whole GPU"
        )
    return RequestSharing(interval=wanted.interval)


def _mps(request: str, wanted: MpsParameters, shares: RequestShares, devices: Sequence[OfferedDevice]) -> RequestMps:
    names = list(dict.fromkeys(device.name for device in devices))
    if len(names) > 1:
        raise BadInput(
            f"request {request}: by MPS a container has one device, and this request has {', '.join(names)}; use a "
            "request and a container for each"
        )
    device, share = devices[0], shares.shares[0]
    for key in wanted.by_device:
        if key not in ("0", device.uuid):
            raise BadInput(
                f"request {request}: defaultPerDevicePinnedMemoryLimit has {key}, but the only device is 0, "
                f"{device.uuid}"
            )
    limit = wanted.by_device.get(device.uuid, wanted.by_device.get("0", wanted.memory_mib))
    return RequestMps(
        gpu=device.uuid,
        memory_mib=share.limit_mib if limit is None else min(limit, share.limit_mib),
        threads_percent=100 if wanted.threads_percent is None else wanted.threads_percent,
        exclusive=share.mode is Mode.WHOLE,
    )


def check_alone(combined: Iterable[Combination], with_mps: Iterable[RequestRef]) -> None:
    """Raises BadInput for a container that would need two MPS daemons, or one and a GPU that it does not serve."""
    daemons = set(with_mps)
    for each in combined:
        if len(each.requests) > 1 and daemons & set(each.requests):
            names = ", ".join(ref.request for ref in each.requests)
            raise BadInput(
                f"{each.container} uses the requests {names}, but one with MPS must be the only one of its containers"
            )
