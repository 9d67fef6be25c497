"""What was read of objects of the API, for processes that read all of them again after each change."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from lamina.ports.kube import Object

T = TypeVar("T")


class ParseCache(Generic[T]):
    """Reads each object once. It stays read while it is the same Python object, so objects that change have to be
    replaced by others."""

    def __init__(self, read: Callable[[Object], T]) -> None:
        self._read = read
        self._known: dict[int, tuple[Object, T]] = {}

    def all(self, objects: Iterable[Object]) -> list[T]:
        """What is read of each, in their order. Objects that are not among them are forgotten."""
        before, self._known = self._known, {}
        for obj in objects:
            self._known[id(obj)] = before.get(id(obj)) or (obj, self._read(obj))
        return [read for _, read in self._known.values()]
