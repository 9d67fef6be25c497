"""The lab's API without HTTP: the same verbs, admission included, for what runs in the same process.

Objects are those of the store, shared by all readers: whoever gets one does not change it.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NoReturn, cast

import msgspec

from lamina.errors import Outside
from lamina.lab.api import patches, selectors
from lamina.lab.api.lifecycle import Deletion
from lamina.lab.api.resources import Resource as Served
from lamina.lab.api.status import ApiError
from lamina.lab.api.verbs import Api, Call
from lamina.lab.api.watching import Watch
from lamina.ports.kube import AlreadyExists, Conflict, Gone, Listing, NotFound, Patch, PatchKind, Refused, Resource
from lamina.ports.kube.protocol import Object, Watched

_BY_CODE: dict[int, type[Outside]] = {
    400: Refused,
    403: Refused,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Refused,
}


class InProcess:
    """A `Kube` of an `Api` in this process. `user` is who admission says it is."""

    def __init__(self, api: Api, user: str) -> None:
        self._api = api
        self._user = user

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        try:
            return self._api.get(self._served(resource), namespace, name).obj
        except ApiError as error:
            _raise(error)

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        try:
            served = self._served(resource)
            found = self._api.list(served, namespace, selectors.selection(served, labels, fields))
        except ApiError as error:
            _raise(error)
        return Listing([version.obj for version in found], str(self._api.store.revision))

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        try:
            served = self._served(resource)
            wish = Watch(served, namespace, selectors.selection(served, labels, fields), version)
            stream = cast(AsyncGenerator[Any], self._api.watch(wish))
            async with aclosing(stream):
                async for batch in stream:
                    for kind, seen in batch:
                        yield Watched(kind, seen.obj)
        except ApiError as error:
            _raise(error)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        namespace = namespace or obj["metadata"].get("namespace", "")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        try:
            return (await self._api.create(self._served(resource), namespace, body, self._call())).obj
        except ApiError as error:
            _raise(error)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        meta = obj["metadata"]
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        place = self._served(resource), meta.get("namespace", ""), meta["name"]
        try:
            return (await self._api.update(*place, body, self._call(), subresource)).obj
        except ApiError as error:
            _raise(error)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Patch,
        *,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
    ) -> Object:
        try:
            served = self._served(resource)
            change = patches.patcher(served, kind.value, msgspec.json.encode(body))
            return (await self._api.patch(served, namespace, name, change, self._call(), subresource)).obj
        except ApiError as error:
            _raise(error)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        wish = Deletion(grace=grace_s, uid=uid)
        try:
            await self._api.delete(self._served(resource), namespace, name, wish, self._call())
        except ApiError as error:
            _raise(error)

    async def bind(self, pod: str, *, namespace: str, uid: str, node: str) -> None:
        try:
            found = self._api.get(self._api.catalogue.named("pods"), namespace, pod)
            if uid and found.meta["uid"] != uid:
                raise Conflict(f"pod {namespace}/{pod} is not the one that was to be bound")
            await self._api.bind(namespace, pod, node, {}, self._call())
        except ApiError as error:
            _raise(error)

    async def close(self) -> None:
        """Nothing is held open."""

    def _served(self, resource: Resource) -> Served:
        return self._api.catalogue.find(resource.group, resource.version, resource.plural)

    def _call(self) -> Call:
        return Call(user=self._user, manager=self._user.rpartition(":")[2])


def _raise(error: ApiError) -> NoReturn:
    kind = AlreadyExists if error.reason == "AlreadyExists" else _BY_CODE.get(error.code, Outside)
    raise kind(error.message) from error
