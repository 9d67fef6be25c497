"""Objects in memory, by resource, with one revision counter.

This layer knows identity, revisions, indexes and history. Deletion is in lifecycle.py, what a write may change is in
write_rules.py. Stored objects are never changed in place, so that readers share them without copies.
"""

import uuid
from collections.abc import Callable, Iterator

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.history import Change, History, Version
from lamina_lab.kubernetes.errors import already_exists, conflict, not_found

HISTORY = 4096


class Collection:
    """All objects of one storage, and their history."""

    def __init__(self, resource: ApiResource, history: int) -> None:
        self.resource = resource
        self.items: dict[tuple[str, str], Version] = {}
        self.history = History(history)


class Store:
    """`clock` returns seconds since 1970."""

    def __init__(self, clock: Callable[[], float], history: int = HISTORY) -> None:
        self.clock = clock
        self.revision = 1
        self._history = history
        self._collections: dict[str, Collection] = {}
        self._by_uid: dict[str, tuple[Collection, tuple[str, str]]] = {}
        self._dependents: dict[str, set[str]] = {}

    def collection(self, resource: ApiResource) -> Collection:
        found = self._collections.get(resource.storage)
        if found is None:
            found = self._collections[resource.storage] = Collection(resource, self._history)
        return found

    def collections(self) -> Iterator[Collection]:
        return iter(list(self._collections.values()))

    def now(self) -> str:
        return rfc3339(self.clock())

    def get(self, resource: ApiResource, namespace: str, name: str) -> Version:
        found = self.collection(resource).items.get((namespace, name))
        if found is None:
            raise not_found(resource.plural, resource.group, name)
        return found

    def find(self, resource: ApiResource, namespace: str, name: str) -> Version | None:
        return self.collection(resource).items.get((namespace, name))

    def list(self, resource: ApiResource, namespace: str = "") -> list[Version]:
        """All objects, or those of one namespace, ordered by namespace and name."""
        items = self.collection(resource).items
        return [items[key] for key in sorted(items) if not namespace or key[0] == namespace]

    def by_uid(self, uid: str) -> tuple[ApiResource, Version] | None:
        found = self._by_uid.get(uid)
        return (found[0].resource, found[0].items[found[1]]) if found else None

    def dependents(self, uid: str) -> Iterator[tuple[ApiResource, Version]]:
        """Objects that have `uid` among their owners."""
        for dependent in sorted(self._dependents.get(uid, ())):
            if found := self.by_uid(dependent):
                yield found

    def identify(self, obj: Object) -> None:
        """Set a new object's uid and creation time, in place."""
        meta = obj["metadata"]
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = self.now()

    def insert(self, resource: ApiResource, obj: Object) -> Version:
        """Store an object with identity. Raises 409 AlreadyExists."""
        collection = self.collection(resource)
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if key in collection.items:
            raise already_exists(resource.plural, resource.group, meta["name"])
        version = self._stamp(obj)
        collection.items[key] = version
        self._by_uid[meta["uid"]] = (collection, key)
        self._index_owners(version, None)
        collection.history.append(Change("ADDED", version, None))
        return version

    def replace(self, resource: ApiResource, before: Version, obj: Object) -> Version:
        """Replace `before` by `obj`. Raises 409 Conflict if `before` is no longer the stored state."""
        collection = self.collection(resource)
        if collection.items.get(before.key) is not before:
            raise conflict(resource.plural, resource.group, before.key[1])
        version = self._stamp(obj)
        collection.items[version.key] = version
        self._index_owners(version, before)
        collection.history.append(Change("MODIFIED", version, before))
        return version

    def remove(self, resource: ApiResource, before: Version) -> Version:
        """Remove an object. Returns its last state with the revision of the removal."""
        collection = self.collection(resource)
        del collection.items[before.key]
        del self._by_uid[before.meta["uid"]]
        self._index_owners(None, before)
        version = self._stamp({**before.obj, "metadata": dict(before.meta)})
        collection.history.append(Change("DELETED", version, before))
        return version

    def _stamp(self, obj: Object) -> Version:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Version(obj)

    def _index_owners(self, after: Version | None, before: Version | None) -> None:
        old, new = _owner_uids(before), _owner_uids(after)
        living = after or before
        uid = living.meta["uid"] if living else ""
        for owner in old - new:
            self._dependents[owner].discard(uid)
            if not self._dependents[owner]:
                del self._dependents[owner]
        for owner in new - old:
            self._dependents.setdefault(owner, set()).add(uid)


def _owner_uids(version: Version | None) -> set[str]:
    references = version.meta.get("ownerReferences") or () if version else ()
    return {reference.get("uid", "") for reference in references}
