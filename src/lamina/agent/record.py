"""What the agent must not forget: the CDI names it gave out, for which tickets, and to which container each belongs.

Kubelet remembers a name it was given for as long as the container may start again, over restarts of both sides, and
asks for it only once. The record is therefore on the disk before kubelet hears the name, and before anything is made
for a container its name is bound to it: whatever is found on the disk later is known, and every step can be repeated.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec import Struct

from lamina.errors import Outside
from lamina.model.gpus import Mode
from lamina.ports.files import Files

Tickets = frozenset[str]


class Instance(Struct, frozen=True, kw_only=True, order=True):
    """A MIG instance by its GPU and place, whether or not it is there."""

    gpu: str
    profile: str
    start: int


class Bound(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The container that a name belongs to."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    gpus: tuple[str, ...] = ()
    """The GPUs that the container uses, by UUID; empty in records of versions that did not note them."""
    mode: Mode | None = None
    instances: tuple[Instance, ...] = ()
    """The MIG instances that it has."""


class Allocation(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One answer to Allocate: `name` was given out for `tickets` of `resource`."""

    name: str
    tickets: Tickets
    resource: str = ""
    bound: Bound | None = None


class _File(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int
    allocations: tuple[Allocation, ...]


_VERSION = 1


class Record:
    """All allocations, oldest first. Each change is on the disk when the call returns, or has not happened."""

    def __init__(self, path: Path, files: Files, *, new_name: Callable[[], str] = lambda: token_hex(16)) -> None:
        """Read the record at `path`, if there is one. Raises Outside where it cannot be understood."""
        self._path = path
        self._files = files
        self._new_name = new_name
        self.allocations = self._load()

    def allocate(self, requests: Sequence[Iterable[str]], resource: str = "") -> tuple[Allocation, ...]:
        """A fresh name for each set of tickets of the resource. Raises Outside."""
        fresh = tuple(
            Allocation(name=self._new_name(), tickets=frozenset(tickets), resource=resource) for tickets in requests
        )
        self._save((*self.allocations, *fresh))
        return fresh

    def bind(self, names: dict[str, Bound]) -> None:
        """Note to which containers `names` belong. Raises Outside."""
        bound = tuple(
            msgspec.structs.replace(allocation, bound=names.get(allocation.name, allocation.bound))
            for allocation in self.allocations
        )
        if bound != self.allocations:
            self._save(bound)

    def drop(self, names: Iterable[str]) -> None:
        """Forget `names`. Raises Outside."""
        gone = frozenset(names)
        kept = tuple(allocation for allocation in self.allocations if allocation.name not in gone)
        if kept != self.allocations:
            self._save(kept)

    def of(self, tickets: Tickets, resource: str) -> tuple[Allocation, ...]:
        """The allocations of exactly this set of the resource, oldest first.

        Replicas of one GPU have the same ids by two resources where a configuration renames one of them.
        """
        return tuple(each for each in self.allocations if each.tickets == tickets and each.resource in (resource, ""))

    @property
    def held(self) -> Tickets:
        """Every ticket that a name was given out for."""
        return frozenset().union(*(allocation.tickets for allocation in self.allocations))

    def _save(self, allocations: tuple[Allocation, ...]) -> None:
        file = _File(version=_VERSION, allocations=allocations)
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(file, order="sorted"), indent=1))
        self.allocations = allocations

    def _load(self) -> tuple[Allocation, ...]:
        content = self._files.read(self._path)
        if content is None:
            return ()
        try:
            file = msgspec.json.decode(content, type=_File)
        except msgspec.DecodeError as error:
            raise Outside(
                f"{self._path} is not a record of this agent ({error}); without it nobody knows which containers were "
                "admitted: move it away, and make the pods of this node that hold GPUs anew"
            ) from error
        if file.version != _VERSION:
            raise Outside(f"{self._path} was written by another version ({file.version}); this one reads {_VERSION}")
        return file.allocations
