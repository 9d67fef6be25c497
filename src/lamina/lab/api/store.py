"""Objects in memory, by resource, with one counter of revisions for all of them.

This layer knows identity, revisions, indexes and history; what deletion means is lifecycle.py's, what a write may
change is verbs.py's. Stored objects are never changed in place, so readers share them without copies.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from lamina.lab.api.history import Change, History, Version
from lamina.lab.api.resources import Resource
from lamina.lab.api.status import Obj, already_exists, conflict, not_found
from lamina.ports.kube.moments import rfc3339

HISTORY = 4096


class Collection:
    """All objects of one storage, and their history."""

    def __init__(self, resource: Resource, history: int) -> None:
        self.resource = resource
        self.items: dict[tuple[str, str], Version] = {}
        self.history = History(history)


class Store:
    """`clock` gives seconds since 1970."""

    def __init__(self, clock: Callable[[], float], history: int = HISTORY) -> None:
        self.clock = clock
        self.revision = 1
        self._history = history
        self._collections: dict[str, Collection] = {}
        self._by_uid: dict[str, tuple[Collection, tuple[str, str]]] = {}
        self._dependents: dict[str, set[str]] = {}

    def collection(self, resource: Resource) -> Collection:
        found = self._collections.get(resource.storage)
        if found is None:
            found = self._collections[resource.storage] = Collection(resource, self._history)
        return found

    def collections(self) -> Iterator[Collection]:
        return iter(list(self._collections.values()))

    def now(self) -> str:
        return rfc3339(self.clock())

    def get(self, resource: Resource, namespace: str, name: str) -> Version:
        found = self.collection(resource).items.get((namespace, name))
        if found is None:
            raise not_found(resource.plural, resource.group, name)
        return found

    def find(self, resource: Resource, namespace: str, name: str) -> Version | None:
        return self.collection(resource).items.get((namespace, name))

    def list(self, resource: Resource, namespace: str = "") -> list[Version]:
        """All objects, or those of one namespace, ordered by namespace and name."""
        items = self.collection(resource).items
        return [items[key] for key in sorted(items) if not namespace or key[0] == namespace]

    def by_uid(self, uid: str) -> tuple[Resource, Version] | None:
        found = self._by_uid.get(uid)
        return (found[0].resource, found[0].items[found[1]]) if found else None

    def dependents(self, uid: str) -> Iterator[tuple[Resource, Version]]:
        """Objects that name `uid` among their owners."""
        for each in sorted(self._dependents.get(uid, ())):
            if found := self.by_uid(each):
                yield found

    def identify(self, obj: Obj) -> None:
        """Give a new object its uid and birthday, in place."""
        meta = obj["metadata"]
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = self.now()

    def insert(self, resource: Resource, obj: Obj) -> Version:
        """Store an identified object. Raises 409 AlreadyExists."""
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

    def replace(self, resource: Resource, before: Version, obj: Obj) -> Version:
        """Put `obj` where `before` was. Raises 409 Conflict when `before` is no longer what is stored."""
        collection = self.collection(resource)
        if collection.items.get(before.key) is not before:
            raise conflict(resource.plural, resource.group, before.key[1])
        version = self._stamp(obj)
        collection.items[version.key] = version
        self._index_owners(version, before)
        collection.history.append(Change("MODIFIED", version, before))
        return version

    def remove(self, resource: Resource, before: Version) -> Version:
        """Take an object away; the answer is its last state, with the revision of the removal."""
        collection = self.collection(resource)
        del collection.items[before.key]
        del self._by_uid[before.meta["uid"]]
        self._index_owners(None, before)
        version = self._stamp({**before.obj, "metadata": dict(before.meta)})
        collection.history.append(Change("DELETED", version, before))
        return version

    def _stamp(self, obj: Obj) -> Version:
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
    return {each.get("uid", "") for each in references}
