"""The API without HTTP, with a clock that stands still until a test moves it."""

from typing import Any

from lamina.lab.api.admission import Webhooks
from lamina.lab.api.history import Version
from lamina.lab.api.lifecycle import Deletion
from lamina.lab.api.patches import merge
from lamina.lab.api.resources import Catalogue, Resource
from lamina.lab.api.status import Obj
from lamina.lab.api.store import Store
from lamina.lab.api.verbs import Api, Call

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


class Bench:
    """An Api with short spellings. Objects are named by storage: `pods`, `deployments.apps`."""

    def __init__(self, history: int = 4096) -> None:
        self.now = NOON
        self.catalogue = Catalogue()
        self.store = Store(lambda: self.now, history)
        self.webhooks = Webhooks(self.store, self.catalogue)
        self.api = Api(self.store, self.catalogue, self.webhooks)
        self.warnings: list[str] = []

    def resource(self, name: str) -> Resource:
        return self.catalogue.named(name)

    def _place(self, name: str, namespace: str) -> tuple[Resource, str]:
        resource = self.resource(name)
        return resource, namespace if resource.namespaced else ""

    async def create(self, name: str, body: Obj, namespace: str = "default", dry_run: bool = False) -> Obj:
        resource, place = self._place(name, namespace)
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        call = Call(dry_run=dry_run, warnings=self.warnings)
        return (await self.api.create(resource, place, full, call)).obj

    async def pod(self, name: str, node: str = "", **meta: Any) -> Obj:
        spec = {"containers": [{"name": "main", "image": "busybox"}]}
        made = await self.create("pods", {"metadata": {"name": name, **meta}, "spec": spec})
        if node:
            await self.api.bind("default", name, node, {}, Call())
        return self.get("pods", name) or made

    async def update(self, name: str, body: Obj, subresource: str = "") -> Obj:
        resource, place = self._place(name, body["metadata"].get("namespace", ""))
        return (await self.api.update(resource, place, body["metadata"]["name"], body, Call(), subresource)).obj

    async def patch(self, name: str, which: str, patch: Obj, namespace: str = "default", subresource: str = "") -> Obj:
        resource, place = self._place(name, namespace)
        change = self.api.patch(resource, place, which, lambda obj: merge(obj, patch), Call(), subresource)
        return (await change).obj

    async def delete(self, name: str, which: str, namespace: str = "default", **wish: Any) -> tuple[Version, bool]:
        resource, place = self._place(name, namespace)
        return await self.api.delete(resource, place, which, Deletion(**wish), Call())

    def get(self, name: str, which: str, namespace: str = "default") -> Obj | None:
        resource, place = self._place(name, namespace)
        found = self.store.find(resource, place, which)
        return found.obj if found else None

    def names(self, name: str, namespace: str = "") -> list[str]:
        return [each.meta["name"] for each in self.api.list(self.resource(name), namespace)]


def owned_by(owner: Obj, block: bool = False) -> list[Obj]:
    """The ownerReferences of an object that `owner` controls."""
    meta = owner["metadata"]
    head = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return [{**head, "controller": True, "blockOwnerDeletion": block}]
