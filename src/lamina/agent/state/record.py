"""What the agent must remember: every holding by its CDI name, and the claims that it prepares.

Kubelet asks for a name once and keeps it for as long as the container may restart, across restarts of kubelet and
agent. So a name is on disk before kubelet gets it, and a name is bound to its container before anything is made for
that container: every file found on disk later is accounted for, and every step can be repeated.

A claim is on disk before anything is made for it, and is forgotten after everything is removed, so an interrupted call
leaves nothing unknown and can be repeated. A claim that is not `ready` has no container: kubelet has had no answer yet,
or has been asked to forget it. Its CDI names follow from its UID and its requests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec import Struct

from lamina.agent.state.holdings import Bound, DeviceIds, Holding, PreparedClaim, claim_holdings
from lamina.core.claims import HeldClaim
from lamina.core.sharing import TimeSlice
from lamina.dra.names import cdi_name
from lamina.errors import Outside
from lamina.ports.files import Files


class _File(Struct, frozen=True, kw_only=True):
    version: int
    allocations: tuple[Holding, ...]
    claims: tuple[PreparedClaim, ...]


_VERSION = 1


class Record:
    """`allocations` are the holdings for which kubelet asked by Allocate, oldest first; `claims` are by UID.

    When a call returns, the change is on disk; if it raises Outside, nothing changed.
    """

    def __init__(self, path: Path, files: Files, *, new_name: Callable[[], str] = lambda: token_hex(16)) -> None:
        """Read the record at `path` if it exists. Raises Outside if it cannot be read."""
        self._path = path
        self._files = files
        self._new_name = new_name
        self.allocations: tuple[Holding, ...] = ()
        self.claims: Mapping[str, PreparedClaim] = {}
        self._load()

    def allocate(self, requests: Sequence[Iterable[str]], resource: str = "") -> tuple[Holding, ...]:
        """Hand out a new name for each set of devices of the resource. Raises Outside."""
        fresh = tuple(
            Holding(name=self._new_name(), tickets=frozenset(tickets), resource=resource) for tickets in requests
        )
        self._save((*self.allocations, *fresh), self.claims)
        return fresh

    def bind(self, names: Mapping[str, Bound]) -> None:
        """Record the containers that `names` belong to. Raises Outside."""
        bound = tuple(
            msgspec.structs.replace(each, bound=names.get(each.name, each.bound)) for each in self.allocations
        )
        self._save(bound, self.claims)

    def drop(self, names: Iterable[str]) -> None:
        """Forget `names`. Raises Outside."""
        dropped = frozenset(names)
        self._save(tuple(each for each in self.allocations if each.name not in dropped), self.claims)

    def put_claims(self, *claims: PreparedClaim) -> None:
        """Record them in one step. Raises Outside."""
        self._save(self.allocations, {**self.claims, **{claim.uid: claim for claim in claims}})

    def drop_claim(self, uid: str) -> None:
        """Raises Outside."""
        self._save(self.allocations, {key: claim for key, claim in self.claims.items() if key != uid})

    def of(self, tickets: DeviceIds, resource: str) -> tuple[Holding, ...]:
        """The allocations of exactly this set of devices of the resource, oldest first.

        The resource matters: after a configuration renames a resource, replicas of one GPU have the same IDs in both.
        """
        return tuple(each for each in self.allocations if each.tickets == tickets and each.resource in (resource, ""))

    @property
    def holdings(self) -> tuple[Holding, ...]:
        """All of them: of pods and of claims."""
        return (*self.allocations, *claim_holdings(self.claims))

    @property
    def containers(self) -> tuple[Bound, ...]:
        """The containers, or requests of claims, that are known to hold something."""
        return tuple(each.bound for each in self.holdings if each.bound is not None)

    @property
    def names(self) -> frozenset[str]:
        """Every CDI name that a container may start with."""
        requests = (cdi_name(claim.uid, each.name) for claim in self.claims.values() for each in claim.requests)
        return frozenset((*(each.name for each in self.allocations), *requests))

    def pods_of(self, owner: str) -> tuple[str, ...]:
        """The UIDs of the pods whose containers use an account. `owner` is the UID of its claim, or of its pod."""
        claim = self.claims.get(owner)
        return (owner,) if claim is None else claim.pods

    @property
    def held_claims(self) -> tuple[HeldClaim, ...]:
        """The claims that hold something, with the requests that do."""
        return tuple(
            HeldClaim(namespace=claim.namespace, name=claim.name, uid=claim.uid, requests=requests)
            for claim in self.claims.values()
            if (requests := tuple(each.grant for each in claim.requests if not each.admin))
        )

    @property
    def claimed(self) -> dict[str, str]:
        """The GPUs and MIG devices that claims hold by UUID, each with one of the claims."""
        return {share.gpu: str(claim) for claim in self.claims.values() for share in claim.shares}

    @property
    def intervals(self) -> dict[str, TimeSlice]:
        """The lengths of turns that claims have for their GPUs, by UUID."""
        return {uuid: length for claim in self.claims.values() for uuid, length in claim.intervals.items()}

    def _save(self, allocations: tuple[Holding, ...], claims: Mapping[str, PreparedClaim]) -> None:
        if (allocations, claims) == (self.allocations, self.claims):
            return
        file = _File(version=_VERSION, allocations=allocations, claims=tuple(claims.values()))
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(file, order="sorted"), indent=1))
        self.allocations, self.claims = allocations, claims

    def _load(self) -> None:
        content = self._files.read(self._path)
        if content is None:
            return
        try:
            file = msgspec.json.decode(content, type=_File)
        except msgspec.DecodeError as error:
            raise Outside(
                f"cannot read the record {self._path}: {error}; without it the agent does not know which containers "
                "and claims hold GPUs: move the file away, then delete and recreate the pods with GPUs on this node"
            ) from error
        if file.version != _VERSION:
            raise Outside(f"the record {self._path} has version {file.version}; this agent reads version {_VERSION}")
        self.allocations, self.claims = file.allocations, {claim.uid: claim for claim in file.claims}
