"""The other door to the node: ResourceClaims, as kube-scheduler allocates them and kubelet has them prepared."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from lamina.agent.kubelet.claim_plugin import ClaimPlugin
from lamina.core.mig import Placed
from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import DRIVER
from lamina.ports.kube import RESOURCE_CLAIMS, RESOURCE_SLICES, Kube, NotFound, Object
from lamina.ports.kubelet import draplugin_pb2 as messages
from lamina_lab.kubernetes.resource_slices import newest_slices
from lamina_lab.scheduler.devices.allocator import Allocator
from tests.whole_node.kinds import NODE
from tests.whole_node.kubelet import Started, started
from tests.worlds.deaths import Died

CLAIMS: dict[str, Object] = {
    "small claim": {"capacity": {"requests": {"memory": "4000Mi"}}},
    "large claim": {"capacity": {"requests": {"memory": "30000Mi"}}},
    "whole claim": {},
    "mig claim": {"profile": "1g.5gb"},
    "large mig claim": {"profile": "3g.20gb"},
}
"""What each asks for: an amount, a MIG device of a profile, or a whole GPU."""
CLASSES = [
    {
        "metadata": {"name": f"{kind}.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].type == '{kind}'"}}]},
    }
    for kind in ("gpu", "mig")
]


@dataclass
class Claim:
    """A claim with the one container that uses it. It is `over` when its pod has ended.

    Once it has a device, `gpu` is the GPU of that, and `place` where a MIG device lies.
    """

    name: str
    uid: str
    gpu: str = ""
    memory_mib: int = 0
    """What it has of a GPU; 0 where it has all of it, or a MIG device."""
    place: Placed | None = None
    running: Started | None = None
    reason: str = ""
    over: bool = False


class ClaimDoor:
    """`claims` are those that kubelet knows, and that wait for their allocation."""

    def __init__(self, kube: Kube, cdi: Path) -> None:
        self._kube = kube
        self._cdi = cdi
        self.plugin: ClaimPlugin | None = None
        self.claims: dict[str, Claim] = {}
        self._count = 0

    async def comes(self, kind: str) -> Claim:
        self._count += 1
        meta = {"name": f"claim{self._count}", "namespace": "default"}
        asks = dict(CLAIMS[kind])
        profile = asks.pop("profile", "")
        if profile:
            asks["selectors"] = [{"cel": {"expression": f"device.attributes['{DRIVER}'].profile == '{profile}'"}}]
        exactly = {"deviceClassName": "mig.nvidia.com" if profile else "gpu.nvidia.com", **asks}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        made = await self._kube.create(RESOURCE_CLAIMS, {"metadata": meta, "spec": spec})
        claim = Claim(meta["name"], made["metadata"]["uid"])
        self.claims[claim.uid] = claim
        return claim

    async def allocate(self) -> None:
        """What kube-scheduler does, as the lab's scheduler does it too."""
        slices = (await self._kube.list(RESOURCE_SLICES)).items
        claims = (await self._kube.list(RESOURCE_CLAIMS)).items
        allocated = [each for each in claims if (each.get("status") or {}).get("allocation")]
        for each in claims:
            claim = self.claims.get(each["metadata"]["uid"])
            if claim is None or each in allocated:
                continue
            allocator = Allocator(slices, CLASSES, allocated, lambda: uuid4().hex)
            found = allocator.allocate({"metadata": {"name": NODE, "labels": {}}}, [each])
            if found is not None:
                status = {"allocation": found[0]}
                allocated.append({**each, "status": status})
                self._note(claim, found[0]["devices"]["results"][0], slices)
                await self._kube.patch(RESOURCE_CLAIMS, claim.name, {"status": status}, namespace="default")

    def _note(self, claim: Claim, result: Object, slices: list[Object]) -> None:
        """What the claim has, from the device that it got."""
        devices = {each["name"]: each for found in newest_slices(slices)[DRIVER, NODE] for each in _devices(found)}
        device = devices[result["device"]]
        attributes = {name: next(iter(value.values())) for name, value in device["attributes"].items()}
        claim.gpu = attributes.get("parentUUID") or attributes["uuid"]
        if "profile" in attributes:
            claim.place = Placed(attributes["profile"], int(claim_start(device["name"])))
            return
        memory, total = (
            int(parse_quantity(value, where="memory").value) // MIB
            for value in (result["consumedCapacity"]["memory"], device["capacity"]["memory"]["value"])
        )
        claim.memory_mib = memory if memory < total else 0

    async def works(self) -> None:
        """What kubelet does: claims whose pods are over are unprepared, and new ones are prepared and used."""
        for claim in list(self.claims.values()):
            if claim.over:
                await self._end(claim)
        for claim in self.claims.values():
            if claim.gpu and claim.running is None and not claim.over:
                await self._start(claim)

    async def _start(self, claim: Claim) -> None:
        if self.plugin is None:
            claim.reason = "no driver"
            return
        request = messages.NodePrepareResourcesRequest(claims=[_message(claim)])
        try:
            answer = (await self.plugin.NodePrepareResources(request, None)).claims[claim.uid]  # type: ignore[arg-type]
        except Died:
            claim.reason = "the driver died"
            return
        claim.reason = answer.error
        if not answer.error:
            names = [id.partition("=")[2] for device in answer.devices for id in device.cdi_device_ids]
            paths = [self._cdi / f"lamina.dev-ticket_{name}.json" for name in names]
            claim.running = started({path: path.read_text() for path in paths})

    async def _end(self, claim: Claim) -> None:
        if claim.gpu:
            if self.plugin is None:
                return
            request = messages.NodeUnprepareResourcesRequest(claims=[_message(claim)])
            try:
                answer = await self.plugin.NodeUnprepareResources(request, None)  # type: ignore[arg-type]
            except Died:
                return
            if answer.claims[claim.uid].error:
                return
        del self.claims[claim.uid]
        await self._delete(claim)

    async def ends(self, claim: Claim, *, forced: bool) -> None:
        """Its container ends. With `forced` the claim is deleted before kubelet has unprepared it."""
        claim.running, claim.over = None, True
        if forced:
            await self._delete(claim)

    async def _delete(self, claim: Claim) -> None:
        try:
            await self._kube.delete(RESOURCE_CLAIMS, claim.name, namespace="default")
        except NotFound:
            return

    def register(self, node: Any, plugin: ClaimPlugin, health: Any) -> "_Registration":
        """In the place of `ClaimRegistration`, which speaks with kubelet over sockets."""
        return _Registration(self, plugin)


@dataclass
class _Registration:
    door: ClaimDoor
    plugin: ClaimPlugin

    async def run(self) -> None:
        self.door.plugin = self.plugin
        try:
            await asyncio.Event().wait()
        finally:
            if self.door.plugin is self.plugin:
                self.door.plugin = None


def _devices(found: Object) -> list[Object]:
    listed: list[Object] = found["spec"].get("devices") or []
    return listed


def claim_start(device: str) -> str:
    """Where a MIG device begins, by its name."""
    return device.rpartition("-")[2]


def _message(claim: Claim) -> messages.Claim:
    return messages.Claim(namespace="default", name=claim.name, uid=claim.uid)
