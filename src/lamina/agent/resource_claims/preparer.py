"""Makes what the containers of a claim need before the first one starts, and removes it after the last one has ended.

Limits and account belong to a request of a claim: all containers that name it, of one or several pods, share them. They
never belong to a container, so kubelet's call needs no owner.

First everything is asked that may answer later. Then claims take the same steps as containers of pods, in
`prepare.steps`. A call that was interrupted, or that kubelet repeats, comes to the same end.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import folder_name, remove_unused
from lamina.agent.context import NodeContext
from lamina.agent.inventory import usage
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.usage import CLAIMED
from lamina.agent.prepare.plan import write_folders
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.resource_claims.dra_devices import DraDevices
from lamina.agent.resource_claims.plan import ClaimSharing, changing_shares, claims_plan, prepared_claims, with_devices
from lamina.agent.resource_claims.quotas import ClaimQuotas
from lamina.agent.resource_claims.unit import ClaimRef, ClaimUnit, UnitReader
from lamina.agent.state.holdings import Instance, PreparedClaim
from lamina.dra.claims import AllocatedClaim, ClaimedDevice
from lamina.dra.names import base_request, cdi_name
from lamina.dra.offers import OfferedDevice
from lamina.dra.shares import require_room
from lamina.enforcement.files import LIMITS, USAGE
from lamina.enforcement.open_usage import is_in_use
from lamina.errors import NotYet, Outside

log = logging.getLogger(__name__)


class ReadyDevice(NamedTuple):
    """A device of a prepared claim, with the CDI devices of the containers that have it."""

    device: ClaimedDevice
    cdi_devices: tuple[str, ...]


class ClaimPreparer:
    """Prepares the claims of one node, one unit at a time."""

    def __init__(
        self,
        node: NodeContext,
        offer: DraDevices,
        offers: NodeOfferStore,
        sharing: ClaimSharing,
        steps: PreparationSteps,
    ) -> None:
        self._sharing = sharing
        self._steps = steps
        self._node = node
        self._record = node.record
        self._offer = offer
        self._offers = offers
        self._turn = asyncio.Lock()
        self._quotas = ClaimQuotas(node)
        self._reader = UnitReader(node)

    async def prepare(self, ref: ClaimRef, *, asked: bool = True) -> list[ReadyDevice]:
        """Make what the claim needs. Raises LaminaError with the reason if that fails; nothing starts then.

        `asked`: kubelet asks for it, so containers may start; otherwise its pod is not even bound to the node.
        """
        async with self._turn:
            claim = await self._reader.claim(ref)
            if not self._is_ready(claim):
                unit = await self._reader.unit(claim)
                before = [known for each in unit.claims if (known := self._record.claims.get(each.uid))]
                wanted = {each.uid for each in unit.claims} if asked else {each.uid for each in before if each.asked}
                await self._remove_all(before)  # what is known was cut short, or allocated again
                await self._prepare_new(unit, wanted)
            known = self._record.claims.get(ref.uid)
            assert known is not None
            known = await self._restored(known)
            if asked and not known.asked:
                self._record.put_claims(structs.replace(known, asked=True))
            return _ready_devices(known)

    async def unprepare(self, ref: ClaimRef) -> None:
        """Remove what was made for the claim; nothing is done for one that is not known.

        Raises NotYet as long as processes of the claim run, because another one must not get their memory.
        """
        async with self._turn:
            known = self._record.claims.get(ref.uid)
            if known is not None:
                await self._remove(known)

    async def release_unasked(self, uid: str) -> None:
        """The same for a claim for which kubelet has not asked, so that none of its containers can run."""
        async with self._turn:
            known = self._record.claims.get(uid)
            if known is not None and not known.asked:
                await self._remove(known)

    async def release(self, claim: PreparedClaim) -> None:
        """The same for a claim that kubelet has forgotten."""
        await self.unprepare(ClaimRef(claim.namespace, claim.name, claim.uid))

    async def _remove(self, claim: PreparedClaim) -> None:
        """Remove what was made for the claim. Raises NotYet as long as its processes run, and Outside."""
        paths, files = self._node.paths, self._node.files
        accounts = [each.account_in(claim.uid) for each in claim.requests]
        if any(is_in_use(paths.containers / folder_name(ref.claim, ref.request) / USAGE) for ref in accounts):
            raise NotYet(f"processes of claim {claim} still run")
        if others := [
            str(each) for each in self._record.claims.values() if each.uid != claim.uid and _has_account(each, claim)
        ]:
            raise NotYet(f"claim {claim} shares limits with {', '.join(others)} and is kept until that is released")
        self._record.put_claims(structs.replace(claim, ready=False))
        await self._sharing.stop(claim)
        for each in claim.requests:
            files.remove(paths.cdi / cdi.file_name(cdi_name(claim.uid, each.name)))
        for ref in accounts:
            if ref.claim == claim.uid:
                files.remove_tree(paths.containers / folder_name(ref.claim, ref.request))
        self._record.drop_claim(claim.uid)
        self._offer.changed()
        remove_unused(paths.libraries, paths.cdi, files)
        log.info("Unprepared claim %s", claim)

    async def _remove_all(self, claims: Iterable[PreparedClaim]) -> None:
        """Those whose accounts are with others first."""
        for claim in sorted(claims, key=lambda each: any(_has_account(other, each) for other in claims)):
            await self._remove(claim)

    def _is_ready(self, claim: AllocatedClaim) -> bool:
        known = self._record.claims.get(claim.uid)
        return known is not None and known.ready and set(known.devices) == set(claim.devices)

    async def _prepare_new(self, unit: ClaimUnit, asked: Set[str]) -> None:
        """`asked` are the UIDs of the claims for which kubelet asks."""
        await self._offer.refresh()
        offered = {device.name: device for device in self._offer.devices}
        driver, root = self._node.settings.dra_driver, self._sharing.daemons.root
        claims = prepared_claims(unit, offered, driver, root, self._node.config)
        prepared = [structs.replace(each, asked=each.uid in asked) for each in claims]
        await self._quotas.require_room(*prepared)
        takers = _ClaimTakers(prepared, self._node, self._offer, self._offers, self._sharing, self._quotas)
        takers.check()  # says more than the plan of a GPU with an MPS daemon
        plan = claims_plan(prepared, self._record.claims.values(), self._offers.state, self._node.paths)
        try:
            await self._steps.take(plan, takers)
        except (NotYet, Outside):
            if takers.bringing:  # no other claim is allocated there at once
                self._offer.refuse({share.gpu for claim in prepared for share in claim.shares})
            raise
        self._record.put_claims(*(structs.replace(each, ready=True) for each in takers.claims))
        for each in prepared:
            log.info("Prepared claim %s: %s", each, ", ".join(_described(device, offered) for device in each.devices))

    async def _restored(self, claim: PreparedClaim) -> PreparedClaim:
        """A ready claim with all that it needs. CDI specs, directories of containers and MIG instances are gone after
        the machine restarts."""
        paths, files = self._node.paths, self._node.files
        seen = {ref.claim for each in claim.requests for ref in each.seen_in(claim.uid)}
        claims = [each for each in self._record.claims.values() if each.uid in seen]
        partitioned = any(share.mig for each in claims for share in each.shares)
        started = [cdi_name(each.uid, request.name) for each in claims for request in each.requests]
        devices = await self._steps.instances(started, changing_shares(claims)) if partitioned else {}
        claim = with_devices(claim, devices)
        self._record.put_claims(claim)
        await self._sharing.start(claim)
        names = [cdi.file_name(cdi_name(claim.uid, each.name)) for each in claim.requests]
        accounts = [each.account_in(claim.uid) for each in claim.requests if each.limited]
        limits = [paths.containers / folder_name(ref.claim, ref.request) / LIMITS for ref in accounts]
        if not partitioned and all(map(files.has_file, [*(paths.cdi / name for name in names), *limits])):
            return claim
        plan = claims_plan([claim], self._record.claims.values(), self._offers.state, paths)
        missing = {folder: each for folder, each in plan.folders.items() if not files.has_file(folder / LIMITS)}
        write_folders(missing, files, self._steps.write_limits)
        for path, content in plan.specs(devices).items():
            if files.read(path) != content:
                files.write(path, content)
        return claim


def _has_account(claim: PreparedClaim, other: PreparedClaim) -> bool:
    """Whether requests of the claim are in accounts of another one."""
    return claim.uid != other.uid and any(each.account_in(claim.uid).claim == other.uid for each in claim.requests)


def _ready_devices(claim: PreparedClaim) -> list[ReadyDevice]:
    """One CDI device for each request: kubelet gives a container those of all devices of the requests that it uses."""
    found, seen = [], set()
    for device in claim.devices:
        request = base_request(device.request)
        names = () if request in seen else (cdi.device_name(cdi_name(claim.uid, request)),)
        seen.add(request)
        found.append(ReadyDevice(device, names))
    return found


def _described(device: ClaimedDevice, offered: dict[str, OfferedDevice]) -> str:
    memory = offered[device.device].memory_mib if device.memory_mib is None else device.memory_mib
    return f"{device.device} for {device.request}" + (" (admin)" if device.admin else f", {memory} MiB")


class _ClaimTakers:
    """The claims of one unit, as they take their devices. Each of these steps may be repeated."""

    def __init__(
        self,
        claims: list[PreparedClaim],
        node: NodeContext,
        offer: DraDevices,
        offers: NodeOfferStore,
        sharing: ClaimSharing,
        quotas: ClaimQuotas,
    ) -> None:
        self.claims = claims
        self.shares = changing_shares(claims)
        self.bringing = False
        """Whether the GPUs are being brought into what the recorded claims need."""
        self._record = node.record
        self._offer = offer
        self._offers = offers
        self._sharing = sharing
        self._quotas = quotas

    def check(self) -> None:
        """Raises NotYet if a pod has one of the GPUs by a device plugin, because the scheduler did not know yet, or if
        other claims leave no room."""
        offered = self._offer.devices
        new = {claim.uid for claim in self.claims}
        held = {str(each): each.shares for each in self._record.claims.values() if each.uid not in new}
        for claim in self.claims:
            self._check_doors(claim, {each.uuid: each.gpu for each in offered})
            require_room(claim.shares, held, offered)
            held[str(claim)] = claim.shares

    def _check_doors(self, claim: PreparedClaim, parents: Mapping[str, str]) -> None:
        units = [unit for share in claim.shares for unit in (share.gpu, parents.get(share.gpu, share.gpu))]
        usage.check_uses([(unit, CLAIMED) for unit in units], self._record.allocations)
        for unit in units:
            self._offer.doors.require_unused(unit)
            daemon = self._offers.daemon(unit)
            if daemon is not None and daemon.made:
                raise NotYet(f"{unit} is in mode mps, and its daemon is {daemon.state.value}; the claim waits")

    async def vacate(self) -> None:
        """A claim waits until the daemon of a GPU has ended by itself."""

    def record(self) -> None:
        self._record.put_claims(*self.claims)
        for each in self.claims:
            self._quotas.prepared(each)
        self._offer.changed()
        self.bringing = True

    async def provide(self, devices: Mapping[Instance, str]) -> None:
        self.claims = [with_devices(each, devices) for each in self.claims]
        self._record.put_claims(*self.claims)
        for each in self.claims:
            await self._sharing.start(each)
        self.bringing = False
