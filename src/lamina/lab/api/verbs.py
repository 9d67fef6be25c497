"""The API itself: the verbs that HTTP handlers and controllers in this process both call.

Each write runs the whole way: shape, defaults, admission, validation, then one step in the store. Webhooks are the only
thing that is waited for, so two writes can cross; the store lets the first one win.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from lamina.lab.api import crds, defaults, priorities, shapes, validation, writing
from lamina.lab.api.history import Version
from lamina.lab.api.lifecycle import Deletion, Lifecycle
from lamina.lab.api.resources import Catalogue, Resource
from lamina.lab.api.selectors import Predicate
from lamina.lab.api.status import ApiError, Obj, bad_request, forbidden
from lamina.lab.api.store import Store
from lamina.lab.api.watching import Watch, follow

Versions = list[Version]
Batch = list[tuple[str, Version]]

PATCH_ATTEMPTS = 5
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "lamina-system")


@dataclass(slots=True)
class Call:
    """What comes with a write besides the object. `warnings` are collected for whoever asked.

    `strictness` says what becomes of fields that the kind does not have: Ignore, Warn or Strict.
    """

    dry_run: bool = False
    user: str = "system:lab"
    manager: str = "unknown"
    strictness: str = "Ignore"
    warnings: list[str] = field(default_factory=list)

    def refuse_or_warn(self, resource: Resource, unknown: list[str]) -> None:
        told = [f'unknown field "{each}"' for each in unknown]
        if unknown and self.strictness == "Strict":
            kind = resource.kind
            head = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error: '
            raise bad_request(head + ", ".join(told))
        if self.strictness == "Warn":
            self.warnings.extend(each for each in told if each not in self.warnings)


@dataclass(frozen=True, slots=True)
class Review:
    """A write that admission looks at. `new` is None for a deletion, `old` for a creation."""

    operation: str
    resource: Resource
    subresource: str
    new: Obj | None
    old: Obj | None


class Admission(Protocol):
    """Both raise an ApiError for a refusal."""

    async def mutate(self, review: Review, call: Call) -> Obj: ...

    async def validate(self, review: Review, call: Call) -> None: ...


class Api:
    """`admission` is called with every write, but for those of webhook configurations themselves."""

    def __init__(self, store: Store, catalogue: Catalogue, admission: Admission) -> None:
        self.store = store
        self.catalogue = catalogue
        self._admission = admission
        self._lifecycle = Lifecycle(store, catalogue)
        for name in NAMESPACES:
            obj: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            resource = catalogue.named("namespaces")
            defaults.fill(resource, obj)
            defaults.initial_status(resource, obj)
            store.identify(obj)
            self._lifecycle.create(resource, obj)

    def get(self, resource: Resource, namespace: str, name: str) -> Version:
        return self.store.get(resource, namespace, name)

    def list(self, resource: Resource, namespace: str = "", selects: Predicate | None = None) -> Versions:
        found = self.store.list(resource, namespace)
        return found if selects is None else [each for each in found if selects(each.obj)]

    def watch(self, watch: Watch) -> AsyncGenerator[Batch, None]:
        return follow(self.store, watch)

    async def create(self, resource: Resource, namespace: str, body: Any, call: Call, name: str = "") -> Version:
        obj = copy.deepcopy(writing.identity(resource, namespace, name, body))
        call.refuse_or_warn(resource, shapes.conform(resource, obj))
        writing.strip_for_create(obj)
        meta = obj["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._lifecycle.generated_name(resource, namespace, str(meta["generateName"]))
        self._lifecycle.check_namespace(resource, namespace, str(meta.get("name")))
        self.store.identify(obj)
        if writing.counts_generations(resource):
            meta["generation"] = 1
        defaults.fill(resource, obj)
        if resource.storage == "pods":
            priorities.resolve(self.store, self.catalogue, obj)
        obj = await self._admitted(Review("CREATE", resource, "", obj, None), call)
        defaults.fill(resource, obj)
        validation.check_new(resource, obj)
        defaults.initial_status(resource, obj)
        await self._validated(Review("CREATE", resource, "", obj, None), call)
        if resource.storage == crds.STORAGE:
            crds.establish(obj, self.store.now())
        if call.dry_run:
            if self.store.find(resource, namespace, meta["name"]) is None:
                return Version({**obj, "metadata": {**obj["metadata"], "resourceVersion": "0"}})
            call.dry_run = False  # the store refuses it below, in its own words
        version = self._lifecycle.create(resource, obj)
        self._after(resource, version)
        return version

    async def update(
        self, resource: Resource, namespace: str, name: str, body: Any, call: Call, subresource: str = ""
    ) -> Version:
        before = self.store.get(resource, namespace, name)
        return await self._write(resource, before, body, call, subresource)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Obj], Obj],
        call: Call,
        subresource: str = "",
    ) -> Version:
        """Change the object as it is now. Tries again when another write comes between."""
        attempt = 1
        while True:
            before = self.store.get(resource, namespace, name)
            try:
                changed = change(_as_version(resource, before.obj))
                return await self._write(resource, before, changed, call, subresource)
            except ApiError as error:
                crossed = self.store.find(resource, namespace, name) is not before
                if error.reason != "Conflict" or not crossed or attempt == PATCH_ATTEMPTS:
                    raise
                attempt += 1

    async def delete(
        self, resource: Resource, namespace: str, name: str, wish: Deletion, call: Call
    ) -> tuple[Version, bool]:
        """Gives the last state of the object, and whether it is gone."""
        before = self.store.get(resource, namespace, name)
        if resource.storage == "namespaces" and name in NAMESPACES:
            raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        await self._validated(Review("DELETE", resource, "", None, before.obj), call)
        current = self.store.get(resource, namespace, name)
        if call.dry_run:
            return current, True
        version, gone = self._lifecycle.delete(resource, current, wish)
        if gone and resource.storage == crds.STORAGE:
            self._withdraw(version.obj)
        return version, gone

    async def bind(self, namespace: str, name: str, node: str, annotations: Obj, call: Call) -> None:
        """Give a pod its node. Raises 409 for one that has a node or is going."""
        pods = self.catalogue.named("pods")
        before = self.store.get(pods, namespace, name)
        taken = before.obj["spec"].get("nodeName")
        if taken or "deletionTimestamp" in before.meta:
            why = (
                f'pod {name} is already assigned to node "{taken}"'
                if taken
                else (f"pod {name} is being deleted, cannot be assigned to a host")
            )
            message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
            raise ApiError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})
        if call.dry_run:
            return
        meta = dict(before.meta)
        if annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        status = dict(before.obj.get("status") or {})
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        scheduled["lastTransitionTime"] = self.store.now()
        others = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
        status["conditions"] = [*others, scheduled]
        spec = {**before.obj["spec"], "nodeName": node}
        self.store.replace(pods, before, {**before.obj, "metadata": meta, "spec": spec, "status": status})

    async def _write(self, resource: Resource, before: Version, body: Any, call: Call, subresource: str) -> Version:
        namespace, name = before.key
        obj = copy.deepcopy(writing.identity(resource, namespace, name, body))
        call.refuse_or_warn(resource, shapes.conform(resource, obj))
        obj = writing.merged(resource, before.obj, obj, subresource)
        if not subresource:
            defaults.fill(resource, obj)
        obj = await self._admitted(Review("UPDATE", resource, subresource, obj, before.obj), call)
        if not subresource:
            defaults.fill(resource, obj)
            validation.check_update(resource, obj, before.obj)
        await self._validated(Review("UPDATE", resource, subresource, obj, before.obj), call)
        writing.bump_generation(resource, before.obj, obj)
        if obj == before.obj:
            return before
        if call.dry_run:
            return Version(obj)
        after = self._lifecycle.update(resource, before, obj)
        if self.store.by_uid(after.meta["uid"]) is not None:
            self._after(resource, after)
        elif resource.storage == crds.STORAGE:
            self._withdraw(after.obj)
        return after

    async def _admitted(self, review: Review, call: Call) -> Obj:
        assert review.new is not None
        if review.resource.group == "admissionregistration.k8s.io":
            return review.new
        admitted = await self._admission.mutate(review, call)
        if admitted is not review.new:  # only what webhooks made anew may be changed; the rest is shared
            shapes.conform(review.resource, admitted)
        return admitted

    async def _validated(self, review: Review, call: Call) -> None:
        if review.resource.group != "admissionregistration.k8s.io":
            await self._admission.validate(review, call)

    def _after(self, resource: Resource, version: Version) -> None:
        if resource.storage == crds.STORAGE:
            crds.serve(self.catalogue, version.obj)

    def _withdraw(self, crd: Obj) -> None:
        """A definition that is gone takes its objects with it."""
        served = crds.resources(crd)
        if served:
            self._lifecycle.sweep(served[0])
        self.catalogue.withdraw(crd["metadata"]["name"])


def _as_version(resource: Resource, obj: Obj) -> Obj:
    """A stored object as this version of its resource shows it. Versions of one kind differ in name alone."""
    return {**obj, "apiVersion": resource.api_version} if obj.get("apiVersion") != resource.api_version else obj
