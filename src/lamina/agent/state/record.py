"""What the agent must remember: the CDI names that it handed out, for which devices, and the container of each name.

Kubelet asks for a name once and keeps it for as long as the container may restart, across restarts of kubelet and
agent. So a name is on disk before kubelet gets it, and a name is bound to its container before anything is made for
that container: every file found on disk later is accounted for, and every step can be repeated.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec import Struct

from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.errors import Outside
from lamina.ports.files import Files

DeviceIds = frozenset[str]


class Instance(Struct, frozen=True, kw_only=True, order=True):
    """A MIG instance by its GPU and place, whether or not it exists."""

    gpu: str
    profile: str
    start: int


def instance_of(share: Share) -> Instance | None:
    """The MIG instance that a share stands for; None for shares without one."""
    return None if share.mig is None else Instance(gpu=share.gpu, profile=share.mig.profile, start=share.mig.start)


class Bound(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The container that a name belongs to."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that the container uses; empty in records of versions that did not store them."""
    mode: Mode | None = None
    instances: tuple[Instance, ...] = ()
    """The MIG instances that the container has."""
    grant: ContainerGrant | None = None
    """What the container was granted; None in records of versions that did not store it."""


class Allocation(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One answer to Allocate: `name` was handed out for the devices `tickets` of `resource`."""

    name: str
    tickets: DeviceIds
    resource: str = ""
    bound: Bound | None = None


class _File(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int
    allocations: tuple[Allocation, ...]


_VERSION = 1


class Record:
    """All allocations, oldest first. When a call returns, the change is on disk; if it raises, nothing changed."""

    def __init__(self, path: Path, files: Files, *, new_name: Callable[[], str] = lambda: token_hex(16)) -> None:
        """Read the record at `path` if it exists. Raises Outside if it cannot be read."""
        self._path = path
        self._files = files
        self._new_name = new_name
        self.allocations = self._load()

    def allocate(self, requests: Sequence[Iterable[str]], resource: str = "") -> tuple[Allocation, ...]:
        """Hand out a new name for each set of devices of the resource. Raises Outside."""
        fresh = tuple(
            Allocation(name=self._new_name(), tickets=frozenset(tickets), resource=resource) for tickets in requests
        )
        self._save((*self.allocations, *fresh))
        return fresh

    def bind(self, names: dict[str, Bound]) -> None:
        """Record the containers that `names` belong to. Raises Outside."""
        bound = tuple(
            msgspec.structs.replace(allocation, bound=names.get(allocation.name, allocation.bound))
            for allocation in self.allocations
        )
        if bound != self.allocations:
            self._save(bound)

    def drop(self, names: Iterable[str]) -> None:
        """Forget `names`. Raises Outside."""
        dropped = frozenset(names)
        remaining = tuple(allocation for allocation in self.allocations if allocation.name not in dropped)
        if remaining != self.allocations:
            self._save(remaining)

    def of(self, tickets: DeviceIds, resource: str) -> tuple[Allocation, ...]:
        """The allocations of exactly this set of devices of the resource, oldest first.

        The resource matters: after a configuration renames a resource, replicas of one GPU have the same IDs in both.
        """
        return tuple(each for each in self.allocations if each.tickets == tickets and each.resource in (resource, ""))

    @property
    def held(self) -> DeviceIds:
        """Every device that a name was handed out for."""
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
                f"cannot read the record {self._path}: {error}; without it the agent does not know which containers "
                "hold GPUs: move the file away, then delete and recreate the pods with GPUs on this node"
            ) from error
        if file.version != _VERSION:
            raise Outside(f"the record {self._path} has version {file.version}; this agent reads version {_VERSION}")
        return file.allocations
