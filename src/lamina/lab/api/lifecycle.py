"""How objects come and go: generated names, finalizers, grace, owners, namespaces.

Kubernetes does much of this in controllers that follow behind; here it happens within the write that causes it, so a
reader never meets the states between.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from lamina.lab.api.history import Version
from lamina.lab.api.resources import Catalogue, Resource
from lamina.lab.api.status import Obj, conflict, forbidden, not_found
from lamina.lab.api.store import Store
from lamina.ports.kube.moments import rfc3339

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Deletion:
    """The wishes of a DELETE. `grace` in seconds, None for the object's own."""

    grace: int | None = None
    propagation: str = "Background"
    uid: str = ""
    revision: str = ""


class Lifecycle:
    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self._store = store
        self._namespaces = catalogue.named("namespaces")
        self._accounts = catalogue.named("serviceaccounts")

    def generated_name(self, resource: Resource, namespace: str, prefix: str) -> str:
        while True:
            name = prefix[:58] + "".join(random.choices(ALPHABET, k=5))
            if self._store.find(resource, namespace, name) is None:
                return name

    def check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        """Raises 404 for a namespace that is not there, 403 for one that is going."""
        if not resource.namespaced:
            return
        found = self._store.find(self._namespaces, "", namespace)
        if found is None:
            raise not_found("namespaces", "", namespace)
        if "deletionTimestamp" in found.meta:
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
            raise forbidden(resource.plural, resource.group, name, message, [{**cause, "field": "metadata.namespace"}])

    def create(self, resource: Resource, obj: Obj) -> Version:
        """Store a new object that has its identity. One whose owners are all gone goes at once."""
        namespace = obj["metadata"].get("namespace", "")
        self.check_namespace(resource, namespace, obj["metadata"]["name"])
        version = self._store.insert(resource, obj)
        if resource.storage == "namespaces":
            self._add_account(obj["metadata"]["name"])
        owners = version.meta.get("ownerReferences") or []
        if owners and not any(self._store.by_uid(each.get("uid", "")) for each in owners):
            self.delete(resource, version, Deletion())
        return version

    def update(self, resource: Resource, before: Version, obj: Obj) -> Version:
        """Replace an object; one that only waited for its finalizers goes with the last of them."""
        after = self._store.replace(resource, before, obj)
        if resource.storage != "namespaces" and _finished(after):
            return self._remove(resource, after)
        if resource.storage == "namespaces":
            return self._finish_namespace(after.meta["name"]) or after
        return after

    def delete(self, resource: Resource, before: Version, wish: Deletion) -> tuple[Version, bool]:
        """Begin or finish a deletion. Gives the last state, and whether the object is gone."""
        self._check_preconditions(resource, before, wish)
        if wish.propagation == "Orphan":
            self._orphan(before)
        if resource.storage == "namespaces":
            return self._delete_namespace(before)
        meta = before.meta
        grace = _grace(resource, before.obj, wish)
        finalizers = list(meta.get("finalizers") or [])
        blocked = wish.propagation == "Foreground" and any(self._store.dependents(meta["uid"]))
        if blocked and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        if not finalizers and grace == 0:
            return self._remove(resource, before), True
        marked = self._mark(resource, before, grace, finalizers)
        if blocked:
            self._delete_dependents(marked, Deletion(propagation="Foreground"))
            return self._finish_foreground(resource, meta["uid"], marked)
        return marked, False

    def sweep(self, resource: Resource) -> None:
        """Drop all objects of a resource that is no longer served."""
        for version in self._store.list(resource):
            self._store.remove(resource, version)

    def _check_preconditions(self, resource: Resource, before: Version, wish: Deletion) -> None:
        for name, wanted, found in (
            ("UID", wish.uid, before.meta["uid"]),
            ("ResourceVersion", wish.revision, before.meta["resourceVersion"]),
        ):
            if wanted and wanted != found:
                why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
                raise conflict(resource.plural, resource.group, before.meta["name"], why)

    def _mark(self, resource: Resource, before: Version, grace: int, finalizers: list[str]) -> Version:
        """Set the deletion's moment. A deletion under way is only ever shortened."""
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

    def _remove(self, resource: Resource, before: Version) -> Version:
        gone = self._store.remove(resource, before)
        self._collect_dependents(gone)
        for each in gone.meta.get("ownerReferences") or []:
            owner = self._store.by_uid(each.get("uid", ""))
            if owner and FOREGROUND in (owner[1].meta.get("finalizers") or []):
                self._finish_foreground(owner[0], each["uid"], owner[1])
        if resource.namespaced:
            self._finish_namespace(gone.meta["namespace"])
        return gone

    def _collect_dependents(self, gone: Version) -> None:
        """Delete what only `gone` owned; take the reference from what others own too."""
        uid = gone.meta["uid"]
        for resource, version in list(self._store.dependents(uid)):
            if self._store.find(resource, *version.key) is not version:
                continue
            others = [each for each in version.meta["ownerReferences"] if each.get("uid") != uid]
            if any(self._store.by_uid(each.get("uid", "")) for each in others):
                self._set_owners(resource, version, others)
            elif "deletionTimestamp" not in version.meta:
                self.delete(resource, version, Deletion())

    def _delete_dependents(self, owner: Version, wish: Deletion) -> None:
        for resource, version in list(self._store.dependents(owner.meta["uid"])):
            current = self._store.find(resource, *version.key)
            if current is not None and "deletionTimestamp" not in current.meta:
                self.delete(resource, current, wish)

    def _finish_foreground(self, resource: Resource, uid: str, last: Version) -> tuple[Version, bool]:
        """Release an owner once no dependent that blocks it is left."""
        found = self._store.by_uid(uid)
        if found is None:
            return last, True
        current = found[1]
        for _, dependent in self._store.dependents(uid):
            for each in dependent.meta["ownerReferences"]:
                if each.get("uid") == uid and each.get("blockOwnerDeletion"):
                    return current, False
        meta = dict(current.meta)
        meta["finalizers"] = [each for each in meta.get("finalizers") or [] if each != FOREGROUND]
        after = self.update(resource, current, {**current.obj, "metadata": meta})
        return after, self._store.by_uid(uid) is None

    def _orphan(self, owner: Version) -> None:
        uid = owner.meta["uid"]
        for resource, version in list(self._store.dependents(uid)):
            self._set_owners(resource, version, [e for e in version.meta["ownerReferences"] if e.get("uid") != uid])

    def _set_owners(self, resource: Resource, version: Version, owners: list[Obj]) -> None:
        meta = {key: value for key, value in version.meta.items() if key != "ownerReferences"}
        if owners:
            meta["ownerReferences"] = owners
        self._store.replace(resource, version, {**version.obj, "metadata": meta})

    def _add_account(self, namespace: str) -> None:
        meta = {"name": "default", "namespace": namespace}
        account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
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
        """Remove a namespace that is going, once it is empty and nobody holds it."""
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


def _grace(resource: Resource, obj: Obj, wish: Deletion) -> int:
    """Only a pod that a kubelet holds has any: its kubelet ends the containers and deletes it with grace 0."""
    if resource.storage != "pods" or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    own = obj["spec"].get("terminationGracePeriodSeconds", 30)
    return max(0, int(own if wish.grace is None else wish.grace))
