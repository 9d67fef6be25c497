"""What Lamina's own opaque parameters say of the shares of a request: limits above what it is guaranteed, and whether
its work comes first on its GPUs.

    apiVersion: lamina.dev/v1alpha1
    kind: ShareConfig
    limits: {memory: 16Gi, cores: 60}
    latencyClass: true

The capacity that the request consumes is guaranteed. Memory up to the limit is lent while the GPU has room, and so is
idle time.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, structs

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, Share
from lamina.dra.names import base_request
from lamina.dra.offers import OfferedDevice
from lamina.dra.opaque import SHARE_CONFIG, check_fields, is_share_config, matching, own_parameters, read_mib
from lamina.dra.shares import RequestShares
from lamina.errors import BadInput


class ShareLimits(Struct, frozen=True, kw_only=True):
    """What the containers of a request may have of each of its devices; None where there is no limit of its own."""

    memory_mib: int | None = None
    cores: int | None = None
    first: bool = False
    """Its work comes before that of others on the GPU."""


def limits_by_request(
    config: Iterable[Mapping[str, Any]], driver: str, requests: Iterable[str]
) -> dict[str, ShareLimits]:
    """The limits of each request that has some, by the name that containers use. The last parameters for a request
    apply. Raises BadInput."""
    names = list(requests)
    found: dict[str, ShareLimits] = {}
    for parameters, named in own_parameters(config, driver):
        if is_share_config(parameters):
            found |= dict.fromkeys(map(base_request, matching(names, named)), _limits(parameters))
    return found


def _limits(parameters: Mapping[str, Any]) -> ShareLimits:
    check_fields(parameters, ("apiVersion", "kind", "limits", "latencyClass"), SHARE_CONFIG)
    written = parameters.get("limits") or {}
    where = f"{SHARE_CONFIG}: limits"
    check_fields(written, ("memory", "cores"), where)
    memory, cores = written.get("memory"), written.get("cores")
    if cores is not None and (type(cores) is not int or not 1 <= cores <= 100):
        raise BadInput(f"{where}.cores must be a number from 1 to 100, got {cores!r}")
    first = parameters.get("latencyClass", False)
    if type(first) is not bool:
        raise BadInput(f"{SHARE_CONFIG}: latencyClass must be true or false, got {first!r}")
    return ShareLimits(
        memory_mib=None if memory is None else read_mib(memory, f"{where}.memory"), cores=cores, first=first
    )


def with_limits(
    request: str, limits: ShareLimits, shares: RequestShares, offered: Iterable[OfferedDevice]
) -> RequestShares:
    """The shares of the request with its limits, which are at most what the device has. Raises BadInput for what they
    cannot have."""
    if limits == ShareLimits():
        return shares
    sizes = {device.uuid: device.memory_mib for device in offered if device.place is None}
    found = tuple(_share(f"request {request}", limits, each, sizes.get(each.gpu, 0)) for each in shares.shares)
    return structs.replace(shares, shares=found, first=limits.first)


def _share(where: str, limits: ShareLimits, share: Share, size_mib: int) -> Share:
    if share.mode is not Mode.QUOTA:
        raise BadInput(f"{where}: {SHARE_CONFIG} is for shares of a GPU; request memory, or remove the limits")
    memory, cores = limits.memory_mib or share.memory_mib, limits.cores or share.cores
    if memory < share.memory_mib:
        raise BadInput(f"{where}: the limit of memory must be at least its request, {share.memory_mib} MiB")
    if limits.cores and not share.cores:
        raise BadInput(f"{where}: a limit of cores requires a request of cores; add one")
    if cores < share.cores:
        raise BadInput(f"{where}: the limit of cores must be at least its request, {share.cores}")
    lends = cores > share.cores
    return structs.replace(
        share,
        most_memory_mib=min(memory, size_mib) if memory > share.memory_mib else 0,
        most_cores=cores if lends else 0,
        compute_policy=ComputePolicy.WEIGHT if lends else share.compute_policy,
    )
