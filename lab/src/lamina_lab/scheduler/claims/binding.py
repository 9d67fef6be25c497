"""Allocates claims for pods: counts decisions in flight, writes them, and waits for devices that must be made ready.

As in kube-scheduler, a decision counts from the moment it is made. It is written before the pod is bound: first the
finalizer that protects an allocated claim, then the allocation with the reservation for the pod.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import DEVICE_CLASSES, DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kube, Object
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.event_timeout import wait_for_event
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.claims import of_pod
from lamina_lab.scheduler.claims.plan import ClaimPlan, PodAllocation
from lamina_lab.scheduler.devices.allocator import Allocator

log = logging.getLogger(__name__)

PROTECTION = "resource.kubernetes.io/delete-protection"
BINDING_TIMEOUT_S = 600.0


class NotPrepared(Outside):
    """Devices with binding conditions were not made ready: they failed, or it took too long."""


class ClaimBinder:
    """The claims of the pods that this scheduler places."""

    def __init__(self, kube: Kube, cache: Cache, clock: Clock) -> None:
        self._kube = kube
        self._cache = cache
        self._clock = clock
        self._in_flight: dict[str, Object] = {}
        """Claims as they will be, by uid; for one that is still to be created, by that of its pod."""

    def served(self) -> Mapping[str, str]:
        """The extended resources that claims can provide, and the device class of each."""
        return of_pod.classes_by_resource(self._cache.list(DEVICE_CLASSES))

    def plan(self, pod: Object) -> ClaimPlan | None:
        """What the nodes could give to the pod's claims; None if it needs none. Raises ClaimsNotReady."""
        known = {objects.key(claim): claim for claim in self._known()}
        claims = of_pod.named(pod, known.get)
        classes = self._cache.list(DEVICE_CLASSES)
        wanted = _limits(pod)
        served = {name: entry for name, entry in self.served().items() if name in wanted}
        if not claims and not served:
            return None
        allocated = [claim for claim in self._known() if of_pod.is_allocated(claim)]
        slices, rules = self._cache.list(RESOURCE_SLICES), self._cache.list(DEVICE_TAINT_RULES)
        allocator = Allocator(slices, classes, allocated, lambda: str(uuid.uuid4()), rules)
        return ClaimPlan(pod, claims, served, allocator)

    def assume(self, pod: Object, chosen: PodAllocation) -> None:
        """Count the allocation from now on."""
        for claim, allocation in zip(chosen.claims, chosen.allocations, strict=True):
            if not of_pod.is_allocated(claim):
                self._in_flight[objects.uid(claim)] = {**claim, "status": {"allocation": allocation}}
        if chosen.extended:
            self._in_flight[objects.uid(pod)] = chosen.extended

    def forget(self, pod: Object, chosen: PodAllocation) -> None:
        """The pod will not be bound with this allocation, or it is written."""
        for uid in [objects.uid(pod), *map(objects.uid, chosen.claims)]:
            self._in_flight.pop(uid, None)

    async def bind(self, pod: Object, chosen: PodAllocation) -> None:
        """Write the allocations and wait until their devices are ready. Raises Outside; then call `unreserve`."""
        written = [
            await self._allocate(pod, claim, allocation)
            for claim, allocation in zip(chosen.claims, chosen.allocations, strict=True)
        ]
        if chosen.extended:
            written.append(await self._create_extended(pod, chosen.extended, chosen.mappings))
        for claim in written:
            await self._until_ready(claim)

    async def unreserve(self, pod: Object) -> None:
        """Undo what `bind` wrote, so that another node can be tried. The controller of claims frees the devices."""
        for claim in self._cache.list(RESOURCE_CLAIMS, objects.namespace(pod)):
            reserved = objects.status(claim).get("reservedFor") or []
            others = [user for user in reserved if user.get("uid") != objects.uid(pod)]
            try:
                if others != reserved:
                    claim = await self._patch(claim, {"status": {"reservedFor": others or None}}, "status")
                if of_pod.is_extended_of(claim, pod):
                    await self._kube.delete(RESOURCE_CLAIMS, objects.name(claim), namespace=objects.namespace(claim))
            except Outside as error:
                log.warning("Cannot release claim %s: %s", objects.key(claim), error)

    def _known(self) -> Iterator[Object]:
        """All claims, those in flight as they will be."""
        for claim in self._cache.list(RESOURCE_CLAIMS):
            in_flight = self._in_flight.get(objects.uid(claim))
            yield in_flight if in_flight and not of_pod.is_allocated(claim) else claim
        for claim in self._in_flight.values():
            if not objects.uid(claim):
                yield claim

    async def _allocate(self, pod: Object, claim: Object, allocation: Object) -> Object:
        """Reserve the claim for the pod, and allocate it if it is not yet."""
        claim = self._cache.get(RESOURCE_CLAIMS, objects.key(claim)) or claim
        finalizers = objects.meta(claim).get("finalizers") or []
        if PROTECTION not in finalizers:
            claim = await self._patch(claim, {"metadata": {"finalizers": [*finalizers, PROTECTION]}})
        reserved = objects.status(claim).get("reservedFor") or []
        status: Object = {"allocation": objects.status(claim).get("allocation") or allocation}
        user = {"resource": PODS.plural, "name": objects.name(pod), "uid": objects.uid(pod)}
        if user not in reserved:
            status["reservedFor"] = [*reserved, user]
        return await self._patch(claim, {"status": status}, "status")

    async def _create_extended(self, pod: Object, claim: Object, mappings: tuple[Object, ...]) -> Object:
        body = {key: value for key, value in claim.items() if key != "status"}
        made = await self._kube.create(RESOURCE_CLAIMS, body, namespace=objects.namespace(pod))
        self._cache.note(RESOURCE_CLAIMS, made)
        allocated = await self._allocate(pod, made, objects.status(claim)["allocation"])
        named = {"resourceClaimName": objects.name(made), "requestMappings": list(mappings)}
        change = {"metadata": {"uid": objects.uid(pod)}, "status": {"extendedResourceClaimStatus": named}}
        namespace = objects.namespace(pod)
        await self._kube.patch(PODS, objects.name(pod), change, namespace=namespace, subresource="status")
        self._in_flight.pop(objects.uid(pod), None)
        return allocated

    async def _patch(self, claim: Object, change: Object, subresource: str = "") -> Object:
        metadata = {**change.get("metadata", {}), "resourceVersion": str(objects.version(claim))}
        after = await self._kube.patch(
            RESOURCE_CLAIMS,
            objects.name(claim),
            {**change, "metadata": metadata},
            namespace=objects.namespace(claim),
            subresource=subresource,
        )
        self._cache.note(RESOURCE_CLAIMS, after)
        return after

    async def _until_ready(self, claim: Object) -> None:
        changed = asyncio.Event()
        stop = self._cache.listen(lambda *change: changed.set())
        began = self._clock.monotonic()
        try:
            while not conditions_hold(claim):
                left = began + BINDING_TIMEOUT_S - self._clock.monotonic()
                if left <= 0:
                    raise NotPrepared(f"the devices of claim {objects.key(claim)} were not ready in time")
                changed.clear()
                claim = self._cache.get(RESOURCE_CLAIMS, objects.key(claim)) or claim
                if not conditions_hold(claim):
                    await wait_for_event(changed, self._clock, left)
        except NotPrepared:
            await self._patch(claim, {"status": {"allocation": None, "reservedFor": None, "devices": None}}, "status")
            raise
        finally:
            stop()


def conditions_hold(claim: Object) -> bool:
    """Whether every device of the claim has its binding conditions. Raises NotPrepared if one has failed."""
    status = objects.status(claim)
    reported = {
        (entry["driver"], entry["pool"], entry["device"], entry.get("shareID")): entry
        for entry in status.get("devices") or ()
    }
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return all(_is_ready(claim, result, reported) for result in results)


def _is_ready(claim: Object, result: Mapping[str, Any], reported: Mapping[Any, Object]) -> bool:
    key = (result["driver"], result["pool"], result["device"], result.get("shareID"))
    found = (reported.get(key) or {}).get("conditions") or ()
    true = {entry["type"]: entry for entry in found if entry.get("status") == "True"}
    for failure in result.get("bindingFailureConditions") or ():
        if failure in true:
            why = true[failure].get("message") or failure
            raise NotPrepared(f"device {result['device']} of claim {objects.key(claim)} cannot be used: {why}")
    return all(wanted in true for wanted in result.get("bindingConditions") or ())


def _limits(pod: Object) -> set[str]:
    spec = objects.spec(pod)
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return {name for container in containers for name in (container.get("resources") or {}).get("limits") or {}}
