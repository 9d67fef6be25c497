"""What claims need: MIG instances, daemons and turns, and on the disk one directory for each account and a CDI spec for
each request.

MIG instances are made and destroyed by the same code as those of grants. An instance exists from the preparation of its
claim until the claim is unprepared and nothing uses it any more. Its UUID is known only then, and may be another one
after a restart of the machine.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from lamina.agent.containers.paths import HostPaths
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.nvidia.time_slices import TimeSliceManager
from lamina.agent.prepare.plan import ContainerPlan, PodRef, PreparationPlan, make_plan
from lamina.agent.resource_claims.daemons import ClaimDaemons, mps_edits
from lamina.agent.resource_claims.unit import ClaimUnit
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import (
    Instance,
    PreparedClaim,
    PreparedMps,
    PreparedRequest,
    account_priority,
    account_shares,
    instance_of,
    shares_of,
)
from lamina.core.config import HIGH_PRIORITY_NAMESPACES, Config
from lamina.core.gpus import Mode
from lamina.core.grants import HIGH, ContainerGrant, Share
from lamina.dra.claims import AllocatedClaim
from lamina.dra.combinations import RequestRef, RequestUse, request_uses
from lamina.dra.names import cdi_name
from lamina.dra.offers import OfferedDevice
from lamina.dra.opaque import SHARE_CONFIG
from lamina.dra.parameters import SharingParameters, sharing_by_request
from lamina.dra.share_limits import ShareLimits, limits_by_request, with_limits
from lamina.dra.shares import RequestShares, request_shares
from lamina.dra.sharing import RequestSharing, check_alone, request_sharing
from lamina.errors import BadInput


class _Request(NamedTuple):
    """What a request has, and how its containers share that."""

    shares: RequestShares
    sharing: RequestSharing


def prepared_claims(
    unit: ClaimUnit, offered: Mapping[str, OfferedDevice], driver: str, root: Path, config: Config
) -> list[PreparedClaim]:
    """The claims as the record has them. Raises LaminaError for what is impossible.

    `offered` are the node's devices by name, `root` is the directory of MPS.
    """
    requests: dict[RequestRef, _Request] = {}
    for claim in unit.claims:
        shares = request_shares(claim, offered)
        kinds = {device.request: offered[device.device].kind for device in claim.devices}
        wanted = sharing_by_request(claim.config, driver, kinds)
        limits = limits_by_request(claim.config, driver, kinds)
        for name, guaranteed in shares.items():
            each = with_limits(name, limits.get(name, ShareLimits()), guaranteed, offered.values())
            if each.first and not config.allows_high_priority(claim.namespace):
                raise BadInput(
                    f"request {name}: {SHARE_CONFIG} must not say latencyClass in the namespace {claim.namespace}, "
                    f"which {HIGH_PRIORITY_NAMESPACES} in Lamina's configuration does not name"
                )
            own = request_sharing(name, wanted.get(name, SharingParameters()), each, claim.requests[name], offered)
            requests[RequestRef(claim.uid, name)] = _Request(each, own)
    uses = request_uses(unit.claims, unit.combined, {name: device.kind for name, device in offered.items()})
    check_alone(unit.combined, (ref for ref, each in requests.items() if each.sharing.mps is not None))
    return [_prepared_claim(claim, requests, uses, root) for claim in unit.claims]


def _prepared_claim(
    claim: AllocatedClaim,
    requests: Mapping[RequestRef, _Request],
    uses: Mapping[RequestRef, RequestUse],
    root: Path,
) -> PreparedClaim:
    refs = [RequestRef(claim.uid, name) for name in claim.requests]
    return PreparedClaim(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        requests=tuple(_prepared_request(ref, claim, requests, uses, root) for ref in refs),
        pods=claim.pod_uids,
    )


def _prepared_request(
    ref: RequestRef,
    claim: AllocatedClaim,
    requests: Mapping[RequestRef, _Request],
    uses: Mapping[RequestRef, RequestUse],
    root: Path,
) -> PreparedRequest:
    own, use = requests[ref], uses[ref]
    mps = own.sharing.mps
    return PreparedRequest(
        name=ref.request,
        grant=ContainerGrant(name=ref.request, shares=own.shares.shares, priority=HIGH if own.shares.first else None),
        devices=claim.requests[ref.request],
        limited=any(requests[each].shares.limited for each in use.visible),
        admin=own.shares.admin,
        account=None if use.account == ref else use.account,
        visible=() if use.visible == (ref,) else use.visible,
        mps=None if mps is None else PreparedMps(root=str(root), **structs.asdict(mps)),
        interval=own.sharing.interval,
    )


def changing_shares(claims: Iterable[PreparedClaim]) -> list[Share]:
    """Those whose GPUs have to be brought into their mode: all but MIG devices that exist already."""
    return [share for claim in claims for share in claim.shares if share.mig or share.mode is not Mode.MIG]


def with_devices(claim: PreparedClaim, devices: Mapping[Instance, str]) -> PreparedClaim:
    """The claim with the MIG devices that its MPS daemons serve."""
    return structs.replace(claim, requests=tuple(_with_device(each, devices) for each in claim.requests))


def _with_device(request: PreparedRequest, devices: Mapping[Instance, str]) -> PreparedRequest:
    instance = instance_of(request.grant.shares[0])
    if request.mps is None or instance is None:
        return request
    return structs.replace(request, mps=structs.replace(request.mps, gpu=devices[instance]))


class ClaimSharing(NamedTuple):
    """The daemons of claims, and the lengths of turns. The record has the claim before and after each call."""

    daemons: ClaimDaemons
    time_slices: TimeSliceManager

    async def start(self, claim: PreparedClaim) -> None:
        """Make it ready. Raises NotYet and Outside."""
        await self.daemons.start(claim)
        lengths = {
            share.gpu: each.interval
            for each in claim.requests
            if each.interval is not None
            for share in each.grant.shares
        }
        await self.time_slices.ensure(str(claim), lengths)

    async def stop(self, claim: PreparedClaim) -> None:
        """End its daemons. Turns have their usual length again once the claim is not recorded any more."""
        await self.daemons.stop(claim)


def claims_plan(
    wanted: Iterable[PreparedClaim], recorded: Iterable[PreparedClaim], state: OfferState, paths: HostPaths
) -> PreparationPlan:
    """For the claims `wanted`, which may have accounts with `recorded` ones.

    Raises NotYet for a device that cannot be used, unless an administrator accesses it.
    """
    new = {claim.uid: claim for claim in wanted}
    known = {claim.uid: claim for claim in recorded} | new
    usable = state.units_without_mps
    existing = {uuid: unit._replace(reason="") for uuid, unit in state.units.items()}
    containers: dict[str, ContainerPlan] = {}
    for claim in new.values():
        for each in claim.requests:
            units = existing if each.admin else usable
            containers |= _request_plan(claim, each, known, units, paths).containers
    return PreparationPlan(containers, paths.cdi)


def _request_plan(
    claim: PreparedClaim,
    request: PreparedRequest,
    claims: Mapping[str, PreparedClaim],
    units: Mapping[str, ObservedGpu],
    paths: HostPaths,
) -> PreparationPlan:
    seen = shares_of(claims.values(), request.seen_in(claim.uid))
    account = request.account_in(claim.uid)
    owner, name, shares, visible, priority = claim, request.name, seen, "", request.grant.priority
    if request.limited:
        owner, name, shares = claims[account.claim], account.request, account_shares(claims.values(), account)
        priority = account_priority(claims.values(), account)
        visible = _visible({share.gpu for share in seen}, units) if len(seen) < len(shares) else ""
    cdi_device = cdi_name(claim.uid, request.name)
    return make_plan(
        {cdi_device: structs.replace(request.grant, name=name, shares=shares, priority=priority)},
        PodRef(owner.namespace, owner.name, owner.uid),
        units,
        paths,
        limited=request.limited,
        visible=visible,
        edits={cdi_device: mps_edits(claim, request)},
    )


def _visible(uuids: Iterable[str], units: Mapping[str, ObservedGpu]) -> str:
    """In the order of their GPUs. A missing one is refused elsewhere."""
    return ",".join(sorted(uuids, key=lambda uuid: units[uuid].facts.index if uuid in units else 0))
