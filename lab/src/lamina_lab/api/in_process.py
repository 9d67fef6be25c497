"""The lab's API without HTTP: the same verbs, including admission, for components in the same process.

Returned objects are the store's own, shared by all readers, and must not be changed.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NoReturn, cast

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import Outside
from lamina.ports.kube import PODS, AlreadyExists, Conflict, Gone, Listing, NotFound, Patch, Refused, Resource
from lamina.ports.kube.protocol import NO_METADATA, BindingMetadata, Object, Watched, encoded_patch
from lamina_lab.api.patching import patches
from lamina_lab.api.schema import field_selectors
from lamina_lab.api.schema.resources import ApiResource as Served
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.verbs import Api, Call
from lamina_lab.api.storage.watches import Watch
from lamina_lab.kubernetes.errors import ApiError

_BY_CODE: dict[int, type[Outside]] = {
    400: Refused,
    403: Refused,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Refused,
}


class InProcess:
    """A `Kube` on an `Api` in this process. `user` is the user that admission sees."""

    def __init__(self, api: Api, user: str, lamina_namespace: str = DEFAULT_NAMESPACE) -> None:
        self._api = api
        self._user = user
        self.lamina_namespace = lamina_namespace

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        try:
            return self._api.get(self._served(resource), namespace, name).obj
        except ApiError as error:
            _raise(error)

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        try:
            served = self._served(resource)
            found = self._api.list(served, namespace, field_selectors.selection(served, labels, fields))
        except ApiError as error:
            _raise(error)
        return Listing([version.obj for version in found], str(self._api.store.revision))

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        try:
            served = self._served(resource)
            request = Watch(served, namespace, field_selectors.selection(served, labels, fields), version)
            stream = cast(AsyncGenerator[Any], self._api.watch(request))
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
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object:
        try:
            served = self._served(resource)
            change = patches.patcher(served, *encoded_patch(body))
            return (await self._api.patch(served, namespace, name, change, self._call(), subresource)).obj
        except ApiError as error:
            _raise(error)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        options = Deletion(grace=grace_s, uid=uid)
        try:
            await self._api.delete(self._served(resource), namespace, name, options, self._call())
        except ApiError as error:
            _raise(error)

    async def bind(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str,
        node: str,
        metadata: BindingMetadata = NO_METADATA,
        version: str = "",
    ) -> None:
        try:
            meant = {"uid": uid, "annotations": dict(metadata.annotations), "resourceVersion": version}
            binding = {"metadata": meant, "target": {"name": node}}
            await self._api.bind(namespace, pod, binding, self._call())
        except ApiError as error:
            _raise(error)

    async def evict(self, pod: str, *, namespace: str, uid: str, grace_s: int | None = None) -> None:
        await self.delete(PODS, pod, namespace=namespace, uid=uid, grace_s=grace_s)

    async def close(self) -> None:
        """Nothing to close."""

    def _served(self, resource: Resource) -> Served:
        return self._api.catalog.find(resource.group, resource.version, resource.plural)

    def _call(self) -> Call:
        return Call(user=self._user, manager=self._user.rpartition(":")[2])


def _raise(error: ApiError) -> NoReturn:
    kind = AlreadyExists if error.reason == "AlreadyExists" else _BY_CODE.get(error.code, Outside)
    raise kind(error.message) from error
