"""The API's verbs, which HTTP handlers and components in this process call.

Each write goes through types, defaults, admission and validation, then takes one step in the store. Only webhooks are
awaited, so two writes can overlap; the store accepts the first.
"""

import copy
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from msgspec import Struct, field

from lamina.ports.kube import Object
from lamina_lab.api.schema import crds, defaults, shapes, validation
from lamina_lab.api.schema.resources import ApiResource, Catalog
from lamina_lab.api.storage import limit_ranges, priorities, write_rules
from lamina_lab.api.storage.history import Version
from lamina_lab.api.storage.lifecycle import Deletion, Lifecycle
from lamina_lab.api.storage.store import Store
from lamina_lab.api.storage.watches import Watch, follow
from lamina_lab.kubernetes.errors import ApiError, bad_request, forbidden
from lamina_lab.kubernetes.selectors import Predicate

Versions = list[Version]
Batch = list[tuple[str, Version]]

PATCH_ATTEMPTS = 5
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "lamina-system")


class Call(Struct):
    """The context of a write. `warnings` are collected for the client.

    `strictness` says how unknown fields are handled: Ignore, Warn or Strict.
    """

    dry_run: bool = False
    user: str = "system:lab"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    manager: str = "unknown"
    strictness: str = "Ignore"
    warnings: list[str] = field(default_factory=list)

    def refuse_or_warn(self, resource: ApiResource, unknown: list[str]) -> None:
        problems = [f'unknown field "{name}"' for name in unknown]
        if unknown and self.strictness == "Strict":
            kind = resource.kind
            head = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: strict decoding error: '
            raise bad_request(head + ", ".join(problems))
        if self.strictness == "Warn":
            self.warnings.extend(problem for problem in problems if problem not in self.warnings)


class AdmissionAttributes(Struct, frozen=True):
    """A write for admission. `new` is None for a deletion, `old` for a creation."""

    operation: str
    resource: ApiResource
    subresource: str
    new: Object | None
    old: Object | None


class AdmissionChain(Protocol):
    """Both methods raise an ApiError to refuse the write."""

    async def mutate(self, review: AdmissionAttributes, call: Call) -> Object: ...

    async def validate(self, review: AdmissionAttributes, call: Call) -> None: ...


class Api:
    """`admission` is called for every write except those of webhook configurations."""

    def __init__(self, store: Store, catalog: Catalog, admission: AdmissionChain) -> None:
        self.store = store
        self.catalog = catalog
        self._admission = admission
        self._lifecycle = Lifecycle(store, catalog)
        for name in NAMESPACES:
            obj: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            resource = catalog.named("namespaces")
            defaults.fill(resource, obj)
            defaults.initial_status(resource, obj)
            store.identify(obj)
            self._lifecycle.create(resource, obj)

    def get(self, resource: ApiResource, namespace: str, name: str) -> Version:
        return self.store.get(resource, namespace, name)

    def list(self, resource: ApiResource, namespace: str = "", selects: Predicate | None = None) -> Versions:
        found = self.store.list(resource, namespace)
        return found if selects is None else [version for version in found if selects(version.obj)]

    def watch(self, watch: Watch) -> AsyncGenerator[Batch, None]:
        return follow(self.store, watch)

    async def create(self, resource: ApiResource, namespace: str, body: Any, call: Call, name: str = "") -> Version:
        obj = copy.deepcopy(write_rules.identity(resource, namespace, name, body))
        call.refuse_or_warn(resource, shapes.conform(resource, obj))
        write_rules.strip_for_create(obj)
        meta = obj["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._lifecycle.generated_name(resource, namespace, str(meta["generateName"]))
        self._lifecycle.check_namespace(resource, namespace, str(meta.get("name")))
        self.store.identify(obj)
        if write_rules.counts_generations(resource):
            meta["generation"] = 1
        defaults.fill(resource, obj)
        if resource.storage == "pods":
            priorities.resolve(self.store, self.catalog, obj)
            limit_ranges.fill(self.store, self.catalog, obj)
        obj = await self._admitted(AdmissionAttributes("CREATE", resource, "", obj, None), call)
        defaults.fill(resource, obj)
        validation.check_new(resource, obj)
        defaults.initial_status(resource, obj)
        if resource.storage == "pods":
            limit_ranges.check(self.store, self.catalog, obj)
        await self._validated(AdmissionAttributes("CREATE", resource, "", obj, None), call)
        if resource.storage == crds.STORAGE:
            crds.establish(obj, self.store.now())
        if call.dry_run:
            if self.store.find(resource, namespace, meta["name"]) is None:
                return Version({**obj, "metadata": {**obj["metadata"], "resourceVersion": "0"}})
            call.dry_run = False  # the store refuses it below with its own message
        version = self._lifecycle.create(resource, obj)
        self._after(resource, version)
        return version

    async def update(
        self, resource: ApiResource, namespace: str, name: str, body: Any, call: Call, subresource: str = ""
    ) -> Version:
        before = self.store.get(resource, namespace, name)
        return await self._write(resource, before, body, call, subresource)

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        call: Call,
        subresource: str = "",
    ) -> Version:
        """Change the current object. Retries if another write comes between."""
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
        self, resource: ApiResource, namespace: str, name: str, options: Deletion, call: Call
    ) -> tuple[Version, bool]:
        """Returns the last state of the object, and whether it is gone."""
        before = self.store.get(resource, namespace, name)
        if resource.storage == "namespaces" and name in NAMESPACES:
            raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        await self._validated(AdmissionAttributes("DELETE", resource, "", None, before.obj), call)
        current = self.store.get(resource, namespace, name)
        if call.dry_run:
            return current, True
        version, gone = self._lifecycle.delete(resource, current, options)
        if gone and resource.storage == crds.STORAGE:
            self._remove_objects_of(version.obj)
        return version, gone

    async def bind(self, namespace: str, name: str, binding: Object, call: Call) -> None:
        """Assign a pod to the node of a Binding, and copy the Binding's annotations to it.

        Raises 409 if the pod has a node, is being deleted or gated, or is another one than the Binding's metadata says.
        Labels are not copied: that is a feature gate of Kubernetes 1.34 which is off by default.
        """
        pods = self.catalog.named("pods")
        before = self.store.get(pods, namespace, name)
        meant, node = binding.get("metadata") or {}, binding["target"]["name"]
        if why := _why_not_bound(name, before, meant):
            message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
            raise ApiError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})
        if call.dry_run:
            return
        meta = dict(before.meta)
        if annotations := meant.get("annotations"):
            meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        status = dict(before.obj.get("status") or {})
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        scheduled["lastTransitionTime"] = self.store.now()
        others = [condition for condition in status.get("conditions") or [] if condition.get("type") != "PodScheduled"]
        status["conditions"] = [*others, scheduled]
        spec = {**before.obj["spec"], "nodeName": node}
        self.store.replace(pods, before, {**before.obj, "metadata": meta, "spec": spec, "status": status})

    async def _write(self, resource: ApiResource, before: Version, body: Any, call: Call, subresource: str) -> Version:
        namespace, name = before.key
        obj = copy.deepcopy(write_rules.identity(resource, namespace, name, body))
        call.refuse_or_warn(resource, shapes.conform(resource, obj))
        obj = write_rules.merged(resource, before.obj, obj, subresource)
        if subresource != "status":
            defaults.fill(resource, obj)
        obj = await self._admitted(AdmissionAttributes("UPDATE", resource, subresource, obj, before.obj), call)
        if subresource != "status":
            defaults.fill(resource, obj)
            validation.check_update(resource, obj, before.obj, subresource)
        await self._validated(AdmissionAttributes("UPDATE", resource, subresource, obj, before.obj), call)
        write_rules.bump_generation(resource, before.obj, obj)
        if obj == before.obj:
            return before
        if call.dry_run:
            return Version(obj)
        after = self._lifecycle.update(resource, before, obj)
        if self.store.by_uid(after.meta["uid"]) is not None:
            self._after(resource, after)
        elif resource.storage == crds.STORAGE:
            self._remove_objects_of(after.obj)
        return after

    async def _admitted(self, review: AdmissionAttributes, call: Call) -> Object:
        assert review.new is not None
        if review.resource.group == "admissionregistration.k8s.io":
            return review.new
        admitted = await self._admission.mutate(review, call)
        if admitted is not review.new:  # only what webhooks created may be changed; the rest is shared
            shapes.conform(review.resource, admitted)
        return admitted

    async def _validated(self, review: AdmissionAttributes, call: Call) -> None:
        if review.resource.group != "admissionregistration.k8s.io":
            await self._admission.validate(review, call)

    def _after(self, resource: ApiResource, version: Version) -> None:
        if resource.storage == crds.STORAGE:
            crds.serve(self.catalog, version.obj)

    def _remove_objects_of(self, crd: Object) -> None:
        """Deleting a definition deletes its objects."""
        served = crds.resources(crd)
        if served:
            self._lifecycle.sweep(served[0])
        self.catalog.withdraw(crd["metadata"]["name"])


def _as_version(resource: ApiResource, obj: Object) -> Object:
    """A stored object in this version of its resource. Versions of one kind differ in name only."""
    return {**obj, "apiVersion": resource.api_version} if obj.get("apiVersion") != resource.api_version else obj


def _why_not_bound(name: str, pod: Version, meant: Object) -> str:
    """Why the pod cannot be bound, in the words of Kubernetes, or nothing. `meant` is the Binding's metadata."""
    for key, words in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, present = meant.get(key), pod.meta[key]
        if wanted and wanted != present:
            return f"Precondition failed: {words} in precondition: {wanted}, {words} in object meta: {present}"
    if "deletionTimestamp" in pod.meta:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if taken := pod.obj["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{taken}"'
    if pod.obj["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
