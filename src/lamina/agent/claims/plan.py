"""What claims need on the disk, from the record of what is prepared: one directory for each account, and a CDI spec for
each request."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from lamina.agent.claims.daemons import mps_edits
from lamina.agent.containers.paths import HostPaths
from lamina.agent.inventory.reducer import AdvertisementState
from lamina.agent.prepare.plan import ContainerPlan, PodRef, PreparationPlan, make_plan
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import PreparedClaim, PreparedRequest, account_shares, shares_of
from lamina.dra.names import cdi_name


def claims_plan(
    wanted: Iterable[PreparedClaim], recorded: Iterable[PreparedClaim], state: AdvertisementState, paths: HostPaths
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
    owner, name, shares, visible = claim, request.name, seen, ""
    if request.limited:
        owner, name, shares = claims[account.claim], account.request, account_shares(claims.values(), account)
        visible = _visible({share.gpu for share in seen}, units) if len(seen) < len(shares) else ""
    cdi_device = cdi_name(claim.uid, request.name)
    return make_plan(
        {cdi_device: structs.replace(request.grant, name=name, shares=shares)},
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
