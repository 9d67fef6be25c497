"""The other door to the node: ResourceClaims, as kube-scheduler allocates them and kubelet has them prepared."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.agent.kubelet.claim_plugin import ClaimPlugin
from lamina.dra.names import DRIVER
from lamina.model.kube_quantity import parse_quantity
from lamina.model.quantities import MIB
from lamina.ports.kube import RESOURCE_CLAIMS, RESOURCE_SLICES, Kube, NotFound, Object
from lamina.ports.kubelet import draplugin_pb2 as messages
from tests.whole_node.kinds import NODE
from tests.whole_node.kubelet import Running, started
from tests.whole_node.mortal_ports import Died

CLAIMS = {"small claim": 4000, "large claim": 30000, "whole claim": 0}
"""How many MiB each asks for; 0 is a whole GPU."""


@dataclass
class Claim:
    """A claim with the one container that uses it. It is `over` when its pod has ended."""

    name: str
    uid: str
    memory_mib: int
    gpu: str = ""
    running: Running | None = None
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
        made = await self._kube.create(RESOURCE_CLAIMS, {"metadata": meta, "spec": {}})
        claim = Claim(meta["name"], made["metadata"]["uid"], CLAIMS[kind])
        self.claims[claim.uid] = claim
        return claim

    async def allocate(self) -> None:
        """What kube-scheduler does: the first device of the published slices that has room."""
        devices = await self._devices()
        taken: dict[str, int] = defaultdict(int)
        waiting = []
        for each in (await self._kube.list(RESOURCE_CLAIMS)).items:
            if results := each.get("status", {}).get("allocation", {}).get("devices", {}).get("results"):
                taken[results[0]["device"]] += int(results[0]["consumedCapacity"]["memory"])
            else:
                waiting.append(each["metadata"]["uid"])
        for claim in (self.claims[uid] for uid in waiting if uid in self.claims):
            for name, (gpu, total) in devices.items():
                wanted = claim.memory_mib * MIB or total
                if taken[name] + wanted <= total:
                    taken[name] += wanted
                    claim.gpu = gpu
                    await self._allocate(claim, name, wanted)
                    break

    async def _devices(self) -> dict[str, tuple[str, int]]:
        """The UUID and the bytes of each healthy GPU that is offered."""
        slices = (await self._kube.list(RESOURCE_SLICES)).items
        newest = max((each["spec"]["pool"]["generation"] for each in slices), default=0)
        return {
            device["name"]: (
                device["attributes"]["uuid"]["string"],
                int(parse_quantity(device["capacity"]["memory"]["value"], where="memory").value),
            )
            for each in slices
            if each["spec"]["pool"]["generation"] == newest
            for device in each["spec"].get("devices", ())
            if device["attributes"]["type"]["string"] == "gpu" and not device.get("taints")
        }

    async def _allocate(self, claim: Claim, device: str, size: int) -> None:
        result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": device, "shareID": claim.uid}
        consumed = {"memory": str(size), "cores": "0"}
        status: Object = {"allocation": {"devices": {"results": [result | {"consumedCapacity": consumed}]}}}
        await self._kube.patch(RESOURCE_CLAIMS, claim.name, {"status": status}, namespace="default")

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


def _message(claim: Claim) -> messages.Claim:
    return messages.Claim(namespace="default", name=claim.name, uid=claim.uid)
