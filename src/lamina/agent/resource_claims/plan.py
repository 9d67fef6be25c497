"""What claims need: MIG instances, daemons and turns, and on the disk one directory for each account and a CDI spec for
each request.

MIG instances are made and destroyed by the same code as those of grants. An instance exists from the preparation of its
claim until the claim is unprepared and nothing uses it any more. Its UUID is known only then, and may be another one
after a restart of the machine.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import HostPaths
from lamina.agent.context import NodeContext
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.nvidia.time_slices import TimeSliceManager
from lamina.agent.prepare.plan import ContainerPlan, PodRef, PreparationPlan, make_plan
from lamina.agent.resource_claims.daemons import ClaimDaemons, mps_edits
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Instance, PreparedClaim, PreparedRequest, account_shares, instance_of, shares_of
from lamina.core.gpus import Mode
from lamina.dra.names import cdi_name


class ClaimInstances:
    """Those of one node."""

    def __init__(self, node: NodeContext, on_demand: GrantPartitioner) -> None:
        self._node = node
        self._on_demand = on_demand

    async def provide(self, claims: Iterable[PreparedClaim]) -> Mapping[Instance, str]:
        """Bring GPUs into the mode of recorded claims, and return the UUIDs of their MIG devices by instance.

        Raises NotYet, BadInput or Outside with the reason why that is not possible now.
        """
        listed = list(claims)
        shares = [share for claim in listed for share in claim.shares if share.mig or share.mode is not Mode.MIG]
        specs = [cdi.file_name(cdi_name(claim.uid, each.name)) for claim in listed for each in claim.requests]
        contents = [self._node.files.read(self._node.paths.cdi / name) or b"" for name in specs]
        started_with = {uuid for content in contents for uuid in cdi.visible_devices(content)}
        return await self._on_demand.prepare(shares, started_with)


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
