"""Carries out what controllers decide, and records the results in their cache."""

import asyncio
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, STATEFUL_SETS, Conflict, EventRecorder, Kube, NotFound, Object, Resource
from lamina.ports.kube.moments import rfc3339
from lamina_lab.controllers.framework.actions import Action, Create, Delete, Event, Patch
from lamina_lab.controllers.framework.ownership import references_with, references_without, sort_children
from lamina_lab.informer.cache import Cache
from lamina_lab.kubernetes import objects


class PodCreation(Struct, frozen=True):
    """The result of creating several pods: how many were created, and the error that stopped it, if any."""

    count: int
    failure: str = ""


class Executor:
    """Writes for one controller. Errors of the API are raised unchanged (see lamina.ports.kube.errors)."""

    def __init__(self, kube: Kube, cache: Cache, clock: Clock, component: str) -> None:
        self._kube = kube
        self.cache = cache
        self.clock = clock
        self._recorder = EventRecorder(kube, component, now=clock.wall)

    async def perform(self, actions: Iterable[Action]) -> None:
        """Carry out actions in order; the first failure stops."""
        for action in actions:
            match action:
                case Create(resource, obj):
                    await self.create(resource, obj)
                case Delete(resource, obj):
                    await self.delete(resource, obj)
                case Patch(resource, obj, body, subresource):
                    await self.patch(resource, obj, body, subresource)
                case Event(resource, obj, reason, message, warning):
                    await self.record_event(resource, obj, reason, message, warning=warning)

    async def exists(self, resource: Resource, name: str) -> bool:
        """Ask the API itself: collections are watched independently, so one may be ahead of another."""
        try:
            await self._kube.get(resource, name)
        except NotFound:
            return False
        return True

    async def create(self, resource: Resource, obj: Object) -> Object:
        made = await self._kube.create(resource, obj, namespace=objects.namespace(obj))
        self.cache.note(resource, made)
        return made

    async def delete(self, resource: Resource, obj: Object) -> None:
        """Delete an object. It is no error if it is gone or has been replaced by another one of that name."""
        try:
            name, namespace = objects.name(obj), objects.namespace(obj)
            await self._kube.delete(resource, name, namespace=namespace, uid=objects.uid(obj))
        except (NotFound, Conflict):
            return
        self.cache.note_deletion(resource, obj, rfc3339(self.clock.wall()))

    async def patch(self, resource: Resource, obj: Object, body: Object, subresource: str = "") -> Object:
        guarded = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": str(objects.version(obj))}}
        name, namespace = objects.name(obj), objects.namespace(obj)
        after = await self._kube.patch(resource, name, guarded, namespace=namespace, subresource=subresource)
        self.cache.note(resource, after)
        return after

    async def publish(self, resource: Resource, obj: Object, status: Object) -> None:
        """Write the status fields that differ, if any."""
        before = objects.status(obj)
        changed = {field: value for field, value in status.items() if before.get(field) != value}
        if changed:
            await self.patch(resource, obj, {"status": changed}, "status")

    async def record_event(
        self, resource: Resource, obj: Object, reason: str, message: str, *, warning: bool = False
    ) -> None:
        await self._recorder.record(resource, obj, reason, message, warning=warning)

    async def own(self, kind: Resource, owner: Object, resource: Resource, children: Iterable[Object]) -> list[Object]:
        """The children, of kind `resource`, that belong to `owner`, after adopting and releasing those that should."""
        found = sort_children(owner, children)
        reference = objects.owner_reference(kind.api_version, kind.kind, owner)
        for child in found.adopt:
            body = {"metadata": {"ownerReferences": references_with(child, reference)}}
            found.owned.append(await self.patch(resource, child, body))
        for child in found.release:
            body = {"metadata": {"ownerReferences": references_without(child, owner)}}
            await self.patch(resource, child, body)
        return found.owned

    async def create_pods(self, resource: Resource, owner: Object, pods: Sequence[Object]) -> PodCreation:
        """Create pods for `owner` in batches that double, so that a refusal affects one pod and not all of them."""
        done, batch = 0, 1
        while done < len(pods):
            answers = await asyncio.gather(
                *(self._make_pod(resource, owner, pod) for pod in pods[done : done + batch]), return_exceptions=True
            )
            failures = [answer for answer in answers if isinstance(answer, BaseException)]
            done += len(answers) - len(failures)
            if failures:
                if not isinstance(failures[0], Outside):
                    raise failures[0]
                message = str(failures[0])
                said = _message(resource, owner, pods[done], "create", message)
                await self.record_event(resource, owner, "FailedCreate", said, warning=True)
                return PodCreation(done, message)
            batch *= 2
        return PodCreation(done)

    async def _make_pod(self, resource: Resource, owner: Object, pod: Object) -> None:
        made = await self.create(PODS, pod)
        await self.record_event(resource, owner, "SuccessfulCreate", _message(resource, owner, made, "create"))

    async def delete_pods(self, resource: Resource, owner: Object, pods: Sequence[Object]) -> None:
        """Delete pods of `owner`, except those that are already being deleted."""
        for pod in pods:
            if not objects.is_deleting(pod):
                await self.delete(PODS, pod)
                await self.record_event(resource, owner, "SuccessfulDelete", _message(resource, owner, pod, "delete"))


def _message(resource: Resource, owner: Object, pod: Object, verb: str, failure: str = "") -> str:
    """The message of an event about a pod, as the controller of this kind writes it."""
    if resource == STATEFUL_SETS:
        ended = f"failed error: {failure}" if failure else "successful"
        return f"{verb} Pod {objects.name(pod)} in StatefulSet {objects.name(owner)} {ended}"
    return f"Error creating: {failure}" if failure else f"{verb.capitalize()}d pod: {objects.name(pod)}"
