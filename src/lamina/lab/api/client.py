"""The API for controllers in the same process: the same verbs and errors, without HTTP.

Resources are named by plural and group: `pods`, `deployments.apps`, `grants.lamina.dev`. Objects that come back are
shared with the store and with all other readers: read them, and copy.deepcopy() what you mean to change.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from lamina.lab.api.lifecycle import Deletion
from lamina.lab.api.patches import merge
from lamina.lab.api.selectors import selection
from lamina.lab.api.status import Obj
from lamina.lab.api.verbs import Api, Call
from lamina.lab.api.watching import Watch

Objects = list[Obj]


class Client:
    """Every method raises ApiError as the HTTP API answers: `error.code` 404, 409, ..., `error.reason`."""

    def __init__(self, api: Api, user: str = "system:lab-controller") -> None:
        self._api = api
        self._user = user

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        return self._api.get(self._api.catalogue.named(resource), namespace, name).obj

    def find(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        """Like get, but None where there is no such object."""
        found = self._api.store.find(self._api.catalogue.named(resource), namespace, name)
        return found.obj if found else None

    def list(self, resource: str, namespace: str = "", labels: str = "", fields: str = "") -> Objects:
        """All objects, or those of one namespace, that match both selectors."""
        found = self._api.catalogue.named(resource)
        return [each.obj for each in self._api.list(found, namespace, selection(found, labels, fields))]

    async def watch(
        self, resource: str, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncIterator[tuple[str, Obj]]:
        """First every present object as ADDED, then each change: (ADDED, MODIFIED or DELETED, object).

        A reader that falls so far behind that changes are lost gets ApiError 410, and should begin anew.
        """
        found = self._api.catalogue.named(resource)
        watch = Watch(found, namespace, selection(found, labels, fields))
        async with contextlib.aclosing(self._api.watch(watch)) as batches:
            async for batch in batches:
                for type_, version in batch:
                    yield type_, version.obj

    async def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        return (await self._api.create(self._api.catalogue.named(resource), namespace, obj, self._call())).obj

    async def update(self, resource: str, obj: Obj, subresource: str = "") -> Obj:
        """Replace an object, or its status. 409 where it is no longer the one that `obj` was made from."""
        meta = obj["metadata"]
        found, namespace = self._api.catalogue.named(resource), meta.get("namespace", "")
        return (await self._api.update(found, namespace, meta["name"], obj, self._call(), subresource)).obj

    async def patch(
        self,
        resource: str,
        name: str,
        patch: Obj | Callable[[Obj], Obj],
        namespace: str = "",
        subresource: str = "",
    ) -> Obj:
        """Apply a merge patch, or a function from the object to a changed copy of it."""
        change = patch if callable(patch) else lambda obj: merge(obj, patch)
        found = self._api.catalogue.named(resource)
        return (await self._api.patch(found, namespace, name, change, self._call(), subresource)).obj

    async def delete(self, resource: str, name: str, namespace: str = "", wish: Deletion | None = None) -> Obj:
        """Begin a deletion; gives the object's last state."""
        found = self._api.catalogue.named(resource)
        version, _ = await self._api.delete(found, namespace, name, wish or Deletion(), self._call())
        return version.obj

    async def bind(self, name: str, node: str, namespace: str) -> None:
        await self._api.bind(namespace, name, node, {}, self._call())

    def _call(self) -> Call:
        return Call(user=self._user, manager=self._user)
