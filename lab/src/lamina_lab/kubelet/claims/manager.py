"""Prepares claims before the first container of a pod starts, and unprepares them after the last pod has ended."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from lamina.errors import Outside
from lamina.ports.kube import RESOURCE_CLAIMS, Kube, Object
from lamina_lab.kubelet.claims import checkpoint
from lamina_lab.kubelet.claims.driver import ClaimError
from lamina_lab.kubelet.claims.drivers import Drivers
from lamina_lab.kubelet.claims.records import NodeClaim, PreparedDevice, all_claims, claim_names, uses

RETRY_S = 1.0


class ClaimManager:
    """Claims are prepared one at a time. Each change is on disk before the call to a driver that it is about."""

    def __init__(self, folder: Path, kube: Kube, drivers: Drivers) -> None:
        self._folder = folder
        self._kube = kube
        self._drivers = drivers
        self._one_at_a_time = asyncio.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._claims = checkpoint.load(folder)

    async def prepare(self, pod: Mapping[str, Any]) -> None:
        """Make all claims of the pod ready. Raises ClaimError; call again to try again."""
        async with self._one_at_a_time:
            for name in all_claims(pod):
                await self._prepare(pod["metadata"]["uid"], pod["metadata"]["namespace"], name)

    def devices(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> list[tuple[NodeClaim, PreparedDevice]]:
        """The prepared devices that one container uses."""
        known = {claim.name: claim for claim in self._claims.values() if pod["metadata"]["uid"] in claim.pods}
        return [
            (known[use.claim], device)
            for use in uses(pod, container)
            if use.claim in known
            for device in known[use.claim].devices
            if device.serves(use.request)
        ]

    def health(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> list[Object]:
        """The health of the devices that a container names, as `allocatedResourcesStatus` has it."""
        known = {claim.name: claim for claim in self._claims.values() if pod["metadata"]["uid"] in claim.pods}
        names = claim_names(pod)
        found: dict[str, Object] = {}
        for entry in (container.get("resources") or {}).get("claims") or ():
            request, claim = entry.get("request") or "", known.get(names.get(entry["name"], ""))
            if listed := [each for each in claim.devices if each.serves(request)] if claim else []:
                name = f"claim:{entry['name']}" + (f"/{request}" if request else "")
                found[name] = {"name": name, "resources": self._resources(listed)}
        return list(found.values())

    def _resources(self, devices: Iterable[PreparedDevice]) -> list[Object]:
        """Each with its first CDI name as its identity, or its own where it has none."""
        found: dict[str, Object] = {}
        for each in devices:
            health = self._drivers.health(each.driver, each.pool, each.device)
            identity = each.cdi[0] if each.cdi else f"{each.driver}/{each.pool}/{each.device}"
            message = {"message": health.message} if health.message else {}
            found.setdefault(identity, {"resourceID": identity, "health": health.health, **message})
        return list(found.values())

    async def unprepare(self, pod_uid: str) -> None:
        """The pod has ended: free the claims that no other pod here uses. Raises ClaimError; call again."""
        async with self._one_at_a_time:
            failure: ClaimError | None = None
            for claim in [claim for claim in self._claims.values() if pod_uid in claim.pods]:
                try:
                    await self._release(claim, pod_uid)
                except ClaimError as error:  # kubelet asks for all claims of a pod in one call
                    failure = failure or error
            if failure is not None:
                raise failure

    async def unprepare_until_done(self, pod_uid: str) -> None:
        """Free the claims of an ended pod, however often the drivers fail."""
        while True:
            try:
                return await self.unprepare(pod_uid)
            except ClaimError as error:
                print(f"unpreparing the claims of pod {pod_uid} failed: {error}", flush=True)
                await asyncio.sleep(RETRY_S)

    def strangers(self, pod_uids: Collection[str]) -> set[str]:
        """UIDs of pods with claims here that are not in `pod_uids`, as after a restart."""
        return {uid for claim in self._claims.values() for uid in claim.pods} - set(pod_uids)

    async def _prepare(self, pod_uid: str, namespace: str, name: str) -> None:
        found = await self._read(namespace, name)
        reserved = (found.get("status") or {}).get("reservedFor") or ()
        if all(user.get("uid") != pod_uid for user in reserved):
            raise ClaimError(f"pod is not allowed to use resourceclaim {namespace}/{name}")
        uid = found["metadata"]["uid"]
        claim = self._claims.setdefault(uid, NodeClaim(uid, namespace, name))
        claim.pods.add(pod_uid)
        claim.drivers |= set(_drivers(found))
        self._save()
        if claim.prepared:
            return
        claim.devices = [
            device for driver in sorted(claim.drivers) for device in await self._drivers.find(driver).prepare(claim)
        ]
        claim.prepared = True
        self._save()

    async def _release(self, claim: NodeClaim, pod_uid: str) -> None:
        if claim.pods == {pod_uid}:
            await self._unprepare(claim)
        else:
            claim.pods.discard(pod_uid)
            self._save()

    async def _unprepare(self, claim: NodeClaim) -> None:
        claim.prepared = False
        self._save()
        for driver in sorted(claim.drivers):
            await self._drivers.find(driver).unprepare(claim)
        del self._claims[claim.uid]
        self._save()

    async def _read(self, namespace: str, name: str) -> Object:
        try:
            return await self._kube.get(RESOURCE_CLAIMS, name, namespace=namespace)
        except Outside as error:
            raise ClaimError(f"cannot read resourceclaim {namespace}/{name}: {error}") from error

    def _save(self) -> None:
        checkpoint.save(self._folder, self._claims)


def _drivers(claim: Object) -> Iterable[str]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [result["driver"] for result in (allocation.get("devices") or {}).get("results") or ()]
