"""The API without HTTP, with a clock that stands still until a test moves it."""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.access.escalation import EscalationCheck
from lamina_lab.api.access.rbac import Roles
from lamina_lab.api.access.users import ADMIN, User
from lamina_lab.api.patching.patches import merge
from lamina_lab.api.schema.resources import ApiResource, Catalog
from lamina_lab.api.storage.history import Version
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.store import Store
from lamina_lab.api.storage.verbs import Api, Call
from lamina_lab.api.webhooks.admission import Webhooks

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


class Bench:
    """An Api with short spellings. Objects are named by storage: `pods`, `deployments.apps`."""

    def __init__(self, history: int = 4096) -> None:
        self.now = NOON
        self.catalog = Catalog()
        self.store = Store(lambda: self.now, history)
        self.webhooks = Webhooks(self.store, self.catalog)
        admission = EscalationCheck(Roles(self.store, self.catalog), self.webhooks)
        self.api = Api(self.store, self.catalog, admission)
        self.warnings: list[str] = []

    def resource(self, name: str) -> ApiResource:
        return self.catalog.named(name)

    def _place(self, name: str, namespace: str) -> tuple[ApiResource, str]:
        resource = self.resource(name)
        return resource, namespace if resource.namespaced else ""

    async def create(
        self, name: str, body: Object, namespace: str = "default", dry_run: bool = False, user: User = ADMIN
    ) -> Object:
        resource, place = self._place(name, namespace)
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        call = Call(dry_run, user.name, user.groups, warnings=self.warnings)
        return (await self.api.create(resource, place, full, call)).obj

    async def pod(self, name: str, node: str = "", **meta: Any) -> Object:
        spec = {"containers": [{"name": "main", "image": "busybox"}]}
        made = await self.create("pods", {"metadata": {"name": name, **meta}, "spec": spec})
        if node:
            await self.api.bind("default", name, {"target": {"name": node}}, Call())
        return self.get("pods", name) or made

    async def update(self, name: str, body: Object, subresource: str = "") -> Object:
        resource, place = self._place(name, body["metadata"].get("namespace", ""))
        return (await self.api.update(resource, place, body["metadata"]["name"], body, Call(), subresource)).obj

    async def patch(
        self,
        name: str,
        which: str,
        patch: Object,
        namespace: str = "default",
        subresource: str = "",
        user: User = ADMIN,
    ) -> Object:
        resource, place = self._place(name, namespace)
        call = Call(user=user.name, groups=user.groups)
        change = self.api.patch(resource, place, which, lambda obj: merge(obj, patch), call, subresource)
        return (await change).obj

    async def delete(self, name: str, which: str, namespace: str = "default", **wish: Any) -> tuple[Version, bool]:
        resource, place = self._place(name, namespace)
        return await self.api.delete(resource, place, which, Deletion(**wish), Call())

    def get(self, name: str, which: str, namespace: str = "default") -> Object | None:
        resource, place = self._place(name, namespace)
        found = self.store.find(resource, place, which)
        return found.obj if found else None

    def names(self, name: str, namespace: str = "") -> list[str]:
        return [each.meta["name"] for each in self.api.list(self.resource(name), namespace)]


def owned_by(owner: Object, block: bool = False) -> list[Object]:
    """The ownerReferences of an object that `owner` controls."""
    meta = owner["metadata"]
    head = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return [{**head, "controller": True, "blockOwnerDeletion": block}]
