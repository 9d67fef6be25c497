"""Creation and deletion: generated names, finalizers, grace periods, owners, namespaces.

Kubernetes does much of this asynchronously in controllers. Here it happens within the write that causes it, so that
readers never see intermediate states.
"""

import random

from msgspec import Struct

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.api.schema.resources import ApiResource, Catalog
from lamina_lab.api.storage.history import Version
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import conflict, forbidden, not_found

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
FOREGROUND = "foregroundDeletion"


class Deletion(Struct, frozen=True):
    """The options of a DELETE. `grace` is in seconds, None for the object's own."""

    grace: int | None = None
    propagation: str = "Background"
    uid: str = ""
    revision: str = ""


class Lifecycle:
    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._namespaces = catalog.named("namespaces")
        self._accounts = catalog.named("serviceaccounts")

    def generated_name(self, resource: ApiResource, namespace: str, prefix: str) -> str:
        while True:
            name = prefix[:58] + "".join(random.choices(ALPHABET, k=5))
            if self._store.find(resource, namespace, name) is None:
                return name

    def check_namespace(self, resource: ApiResource, namespace: str, name: str) -> None:
        """Raises 404 if the namespace does not exist, 403 if it is terminating."""
        if not resource.namespaced:
            return
        found = self._store.find(self._namespaces, "", namespace)
        if found is None:
            raise not_found("namespaces", "", namespace)
        if "deletionTimestamp" in found.meta:
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
            raise forbidden(resource.plural, resource.group, name, message, [{**cause, "field": "metadata.namespace"}])

    def create(self, resource: ApiResource, obj: Object) -> Version:
        """Store a new object with its identity. If all its owners are gone, it is deleted at once."""
        namespace = obj["metadata"].get("namespace", "")
        self.check_namespace(resource, namespace, obj["metadata"]["name"])
        version = self._store.insert(resource, obj)
        if resource.storage == "namespaces":
            self._add_account(obj["metadata"]["name"])
        owners = version.meta.get("ownerReferences") or []
        if owners and not any(self._store.by_uid(owner.get("uid", "")) for owner in owners):
            self.delete(resource, version, Deletion())
        return version

    def update(self, resource: ApiResource, before: Version, obj: Object) -> Version:
        """Replace an object. If it only waited for its finalizers, it is deleted with the last of them."""
        after = self._store.replace(resource, before, obj)
        if resource.storage != "namespaces" and _finished(after):
            return self._remove(resource, after)
        if resource.storage == "namespaces":
            return self._finish_namespace(after.meta["name"]) or after
        return after

    def delete(self, resource: ApiResource, before: Version, options: Deletion) -> tuple[Version, bool]:
        """Start or finish a deletion. Returns the last state, and whether the object is gone."""
        self._check_preconditions(resource, before, options)
        if options.propagation == "Orphan":
            self._orphan(before)
        if resource.storage == "namespaces":
            return self._delete_namespace(before)
        meta = before.meta
        grace = _grace(resource, before.obj, options)
        finalizers = list(meta.get("finalizers") or [])
        blocked = options.propagation == "Foreground" and any(self._store.dependents(meta["uid"]))
        if blocked and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        if not finalizers and grace == 0:
            return self._remove(resource, before), True
        marked = self._mark(resource, before, grace, finalizers)
        if blocked:
            self._delete_dependents(marked, Deletion(propagation="Foreground"))
            return self._release_owners(resource, meta["uid"], marked)
        return marked, False

    def sweep(self, resource: ApiResource) -> None:
        """Drop all objects of a resource that is no longer served."""
        for version in self._store.list(resource):
            self._store.remove(resource, version)

    def _check_preconditions(self, resource: ApiResource, before: Version, options: Deletion) -> None:
        for name, wanted, found in (
            ("UID", options.uid, before.meta["uid"]),
            ("ResourceVersion", options.revision, before.meta["resourceVersion"]),
        ):
            if wanted and wanted != found:
                why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
                raise conflict(resource.plural, resource.group, before.meta["name"], why)

    def _mark(self, resource: ApiResource, before: Version, grace: int, finalizers: list[str]) -> Version:
        """Set the deletion timestamp. A second deletion can only shorten the first."""
        meta = dict(before.meta)
        old_grace = meta.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" not in meta or (old_grace is not None and grace < old_grace):
            meta["deletionTimestamp"] = rfc3339(self._store.clock() + grace)
            meta["deletionGracePeriodSeconds"] = grace
        if finalizers:
            meta["finalizers"] = finalizers
        if "generation" in meta and "deletionTimestamp" not in before.meta:
            meta["generation"] += 1
        if meta == before.meta:
            return before
        return self._store.replace(resource, before, {**before.obj, "metadata": meta})

    def _remove(self, resource: ApiResource, before: Version) -> Version:
        gone = self._store.remove(resource, before)
        self._collect_dependents(gone)
        for reference in gone.meta.get("ownerReferences") or []:
            owner = self._store.by_uid(reference.get("uid", ""))
            if owner and FOREGROUND in (owner[1].meta.get("finalizers") or []):
                self._release_owners(owner[0], reference["uid"], owner[1])
        if resource.namespaced:
            self._finish_namespace(gone.meta["namespace"])
        return gone

    def _collect_dependents(self, gone: Version) -> None:
        """Delete what only `gone` owned; remove the reference from what others own too."""
        uid = gone.meta["uid"]
        for resource, version in list(self._store.dependents(uid)):
            if self._store.find(resource, *version.key) is not version:
                continue
            others = [reference for reference in version.meta["ownerReferences"] if reference.get("uid") != uid]
            if any(self._store.by_uid(other.get("uid", "")) for other in others):
                self._set_owners(resource, version, others)
            elif "deletionTimestamp" not in version.meta:
                self.delete(resource, version, Deletion())

    def _delete_dependents(self, owner: Version, options: Deletion) -> None:
        for resource, version in list(self._store.dependents(owner.meta["uid"])):
            current = self._store.find(resource, *version.key)
            if current is not None and "deletionTimestamp" not in current.meta:
                self.delete(resource, current, options)

    def _release_owners(self, resource: ApiResource, uid: str, last: Version) -> tuple[Version, bool]:
        """Release an owner once no dependent blocks its deletion."""
        found = self._store.by_uid(uid)
        if found is None:
            return last, True
        current = found[1]
        for _, dependent in self._store.dependents(uid):
            for reference in dependent.meta["ownerReferences"]:
                if reference.get("uid") == uid and reference.get("blockOwnerDeletion"):
                    return current, False
        meta = dict(current.meta)
        meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers") or [] if finalizer != FOREGROUND]
        after = self.update(resource, current, {**current.obj, "metadata": meta})
        return after, self._store.by_uid(uid) is None

    def _orphan(self, owner: Version) -> None:
        uid = owner.meta["uid"]
        for resource, version in list(self._store.dependents(uid)):
            self._set_owners(resource, version, [e for e in version.meta["ownerReferences"] if e.get("uid") != uid])

    def _set_owners(self, resource: ApiResource, version: Version, owners: list[Object]) -> None:
        meta = {key: value for key, value in version.meta.items() if key != "ownerReferences"}
        if owners:
            meta["ownerReferences"] = owners
        self._store.replace(resource, version, {**version.obj, "metadata": meta})

    def _add_account(self, namespace: str) -> None:
        meta = {"name": "default", "namespace": namespace}
        account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
        self._store.identify(account)
        self._store.insert(self._accounts, account)

    def _delete_namespace(self, before: Version) -> tuple[Version, bool]:
        name = before.meta["name"]
        if "deletionTimestamp" not in before.meta:
            meta = {**before.meta, "deletionTimestamp": self._store.now()}
            terminating = {**before.obj, "metadata": meta, "status": {"phase": "Terminating"}}
            before = self._store.replace(self._namespaces, before, terminating)
            for collection in self._store.collections():
                for version in self._store.list(collection.resource, name):
                    current = self._store.find(collection.resource, *version.key)
                    if current is not None and "deletionTimestamp" not in current.meta:
                        self.delete(collection.resource, current, Deletion())
        gone = self._finish_namespace(name)
        return gone or before, gone is not None or self._store.find(self._namespaces, "", name) is None

    def _finish_namespace(self, name: str) -> Version | None:
        """Remove a terminating namespace once it is empty and has no finalizers."""
        current = self._store.find(self._namespaces, "", name)
        if current is None or "deletionTimestamp" not in current.meta or current.meta.get("finalizers"):
            return None
        for collection in self._store.collections():
            if any(key[0] == name for key in collection.items):
                return None
        gone = self._store.remove(self._namespaces, current)
        self._collect_dependents(gone)
        return gone


def _finished(version: Version) -> bool:
    meta = version.meta
    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in meta and not waits


def _grace(resource: ApiResource, obj: Object, options: Deletion) -> int:
    """Only a pod on a node has a grace period: its kubelet ends the containers and deletes it with grace 0."""
    if resource.storage != "pods" or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    own = obj["spec"].get("terminationGracePeriodSeconds", 30)
    return max(0, int(own if options.grace is None else options.grace))
