"""Makes what the containers of a claim need before the first one starts, and removes it after the last one has ended.

Limits and account belong to a request of a claim: all containers that name it, of one or several pods, share them. They
never belong to a container, so kubelet's call needs no owner.

First everything is asked that may answer later. Then, without a pause in which another door could assign a GPU, the
doors and the room are checked, and the claim goes into the record. Only then are files made. A call that was
interrupted, or that kubelet repeats, comes to the same end.
"""

import asyncio
import logging
from typing import NamedTuple

from lamina.agent.claims.offer import ClaimOffer
from lamina.agent.claims.quotas import ClaimQuotas
from lamina.agent.containers import cdi
from lamina.agent.containers.libraries import remove_unused
from lamina.agent.containers.limit_files import write_limits
from lamina.agent.containers.paths import USAGE, folder_name
from lamina.agent.context import NodeContext
from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.prepare.plan import ContainerPlan, PodRef, PreparationPlan, WriteLimits, make_plan, write_plan
from lamina.agent.state.claim_record import PreparedClaim, PreparedRequest
from lamina.dra.claims import AllocatedClaim, ClaimedDevice, read_claim
from lamina.dra.containers import other_claims, request_problem
from lamina.dra.names import base_request, cdi_name
from lamina.dra.offers import OfferedDevice
from lamina.dra.parameters import check_parameters
from lamina.dra.shares import request_shares, require_room
from lamina.enforcement.slot_locks import is_in_use
from lamina.errors import BadInput, NotYet
from lamina.model.grants import ContainerGrant
from lamina.ports.kube import PODS, RESOURCE_CLAIMS, NotFound, Object

log = logging.getLogger(__name__)


class ClaimRef(NamedTuple):
    """A claim as kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReadyDevice(NamedTuple):
    """A device of a prepared claim, with the CDI devices of the containers that have it."""

    device: ClaimedDevice
    cdi_devices: tuple[str, ...]


class ClaimPreparer:
    """Prepares the claims of one node, one at a time."""

    def __init__(
        self,
        node: NodeContext,
        offer: ClaimOffer,
        advertisement: Advertisement,
        write_limits: WriteLimits = write_limits,
    ) -> None:
        self._node = node
        self._record = node.claims
        self._offer = offer
        self._advertisement = advertisement
        self._write_limits = write_limits
        self._turn = asyncio.Lock()
        self._quotas = ClaimQuotas(node)

    async def prepare(self, ref: ClaimRef) -> list[ReadyDevice]:
        """Make what the claim needs. Raises LaminaError with the reason if that fails; nothing starts then."""
        async with self._turn:
            found = await self._get(ref)
            if found is None or found["metadata"]["uid"] != ref.uid:
                raise NotYet(f"claim {ref} with the UID {ref.uid} does not exist in Kubernetes")
            claim = read_claim(found, self._node.settings.dra_driver, self._node.node)
            known = self._record.get(ref.uid)
            if known is None or not known.ready or set(known.devices) != set(claim.devices):
                if known is not None:
                    self.remove(known)  # it was cut short, or allocated again
                known = await self._prepare_new(claim, found)
            self._restore_specs(known)
            return _ready_devices(known)

    async def unprepare(self, ref: ClaimRef) -> None:
        """Remove what was made for the claim; nothing is done for one that is not known.

        Raises NotYet as long as processes of the claim run, because another one must not get their memory.
        """
        async with self._turn:
            known = self._record.get(ref.uid)
            if known is not None:
                self.remove(known)

    def remove(self, claim: PreparedClaim) -> None:
        """Remove what was made for the claim. Raises NotYet as long as its processes run, and Outside."""
        paths, files = self._node.paths, self._node.files
        folders = [paths.containers / folder_name(claim.uid, each.name) for each in claim.requests]
        if any(is_in_use(folder / USAGE) for folder in folders):
            raise NotYet(f"processes of claim {claim} still run")
        self._record.put(_with_ready(claim, ready=False))
        for each in claim.requests:
            files.remove(paths.cdi / cdi.file_name(cdi_name(claim.uid, each.name)))
        for folder in folders:
            files.remove_tree(folder)
        self._record.drop(claim.uid)
        self._offer.changed()
        remove_unused(paths.libraries, paths.cdi, files)
        log.info("Unprepared claim %s", claim)

    async def _prepare_new(self, claim: AllocatedClaim, found: Object) -> PreparedClaim:
        await self._offer.look()
        offered = {device.name: device for device in self._offer.devices}
        shares = request_shares(claim, offered)
        kinds = {device.request: offered[device.device].kind for device in claim.devices}
        check_parameters(claim.config, self._node.settings.dra_driver, kinds)
        await self._check_containers(claim)
        requests = tuple(
            PreparedRequest(
                name=name,
                grant=ContainerGrant(name=name, shares=each.shares),
                devices=claim.requests[name],
                limited=each.limited,
                admin=each.admin,
            )
            for name, each in shares.items()
        )
        reserved = (found.get("status") or {}).get("reservedFor") or ()
        prepared = PreparedClaim(
            namespace=claim.namespace,
            name=claim.name,
            uid=claim.uid,
            requests=requests,
            pods=tuple(each["uid"] for each in reserved if each.get("resource") == "pods"),
        )
        await self._quotas.require_room(prepared)
        granted = await self._granted() if prepared.shares and self._offer.others.unknown else {}
        self._check_doors(prepared, granted)
        held = {str(each): each.shares for each in self._record.claims if each.uid != claim.uid}
        require_room(prepared.shares, held, offered.values())
        plan = self._plan(prepared)
        self._record.put(prepared)
        self._quotas.prepared(prepared)
        self._offer.changed()
        write_plan(plan, self._node.files, self._write_limits)
        ready = _with_ready(prepared, ready=True)
        self._record.put(ready)
        log.info("Prepared claim %s: %s", ready, ", ".join(_described(each, offered) for each in claim.devices))
        return ready

    def _check_doors(self, claim: PreparedClaim, granted: dict[str, str]) -> None:
        """Raises NotYet if a container has one of the GPUs by a device plugin: the scheduler did not know yet."""
        others, parents = self._offer.others, {each.uuid: each.gpu for each in self._offer.devices}
        for share in claim.shares:
            for unit in (share.gpu, parents.get(share.gpu, share.gpu)):
                if unit in others.gpus or unit in granted:
                    holder = f" by pod {granted[unit]}" if unit in granted else ""
                    raise NotYet(f"{unit} is in use{holder} through the device plugin; the claim waits until that ends")

    async def _granted(self) -> dict[str, str]:
        """The GPUs of grants by UUID, with their pods. Raises Outside."""
        return {
            share.gpu: pod
            for pod, grant in (await self._node.cluster.list_grants()).items()
            for container in grant.containers
            for share in container.shares
        }

    async def _check_containers(self, claim: AllocatedClaim) -> None:
        """Raises BadInput if a container would need the limits of two requests, which it cannot have."""
        for name in claim.pods:
            try:
                pod = await self._node.kube.get(PODS, name, namespace=claim.namespace)
            except NotFound:
                continue
            if problem := request_problem(pod, claim.name, len(claim.requests)):
                raise BadInput(problem)
            for other, container in other_claims(pod, claim.name).items():
                if await self._has_devices(claim.namespace, other):
                    raise BadInput(
                        f'container "{container}" of pod {name} uses the claims {claim.name} and {other}, and gets the '
                        "devices of one claim only; ask for all of them in one request"
                    )

    async def _has_devices(self, namespace: str, name: str) -> bool:
        """Whether a claim has devices of this driver here."""
        found = await self._get(ClaimRef(namespace, name, ""))
        try:
            return found is not None and bool(
                read_claim(found, self._node.settings.dra_driver, self._node.node).devices
            )
        except NotYet:
            return False

    async def _get(self, ref: ClaimRef) -> Object | None:
        try:
            return await self._node.kube.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return None

    def _plan(self, claim: PreparedClaim) -> PreparationPlan:
        """Raises NotYet for a device that cannot be used, unless an administrator accesses it."""
        pod = PodRef(claim.namespace, claim.name, claim.uid)
        units = self._advertisement.state.units_without_mps
        known = {uuid: unit._replace(reason="") for uuid, unit in self._advertisement.state.units.items()}
        containers: dict[str, ContainerPlan] = {}
        for each in claim.requests:
            grants = {cdi_name(claim.uid, each.name): each.grant}
            made = make_plan(grants, pod, known if each.admin else units, self._node.paths, limited=each.limited)
            containers |= made.containers
        return PreparationPlan(containers, self._node.paths.cdi)

    def _restore_specs(self, claim: PreparedClaim) -> None:
        """CDI specs are not kept when the machine restarts."""
        paths, files = self._node.paths, self._node.files
        names = [cdi.file_name(cdi_name(claim.uid, each.name)) for each in claim.requests]
        if all(files.has_file(paths.cdi / name) for name in names):
            return
        for path, content in self._plan(claim).specs({}).items():
            files.write(path, content)


def _with_ready(claim: PreparedClaim, *, ready: bool) -> PreparedClaim:
    return PreparedClaim(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        requests=claim.requests,
        pods=claim.pods,
        ready=ready,
    )


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
