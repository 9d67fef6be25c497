"""The claims that are prepared on this node, or that a call has begun to prepare or to unprepare.

A claim is on disk before anything is made for it, and is forgotten after everything is removed, so an interrupted call
leaves nothing unknown and can be repeated. A claim that is not `ready` has no container: kubelet has had no answer yet,
or has been asked to forget it.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.state.record import Allocation, Bound
from lamina.dra.claims import ClaimedDevice
from lamina.dra.names import cdi_name
from lamina.errors import NotYet, Outside
from lamina.model.claims import HeldClaim
from lamina.model.grants import ContainerGrant, Share
from lamina.ports.files import Files


class PreparedRequest(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A request of a claim, whose containers share one account. `limited`: the facade holds their limits."""

    name: str
    grant: ContainerGrant
    devices: tuple[ClaimedDevice, ...]
    limited: bool = False
    admin: bool = False


class PreparedClaim(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`pods` are the UIDs of the pods for which it was reserved when it was prepared."""

    namespace: str
    name: str
    uid: str
    requests: tuple[PreparedRequest, ...]
    pods: tuple[str, ...] = ()
    ready: bool = False

    @property
    def shares(self) -> tuple[Share, ...]:
        """What it holds of the node's devices."""
        return tuple(share for each in self.requests if not each.admin for share in each.grant.shares)

    @property
    def devices(self) -> tuple[ClaimedDevice, ...]:
        return tuple(device for each in self.requests for device in each.devices)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _File(Struct, frozen=True, kw_only=True):
    version: int
    claims: tuple[PreparedClaim, ...]


_VERSION = 1


class ClaimRecord:
    """When a call returns, the change is on disk; if it raises Outside, nothing changed."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read the record at `path` if it exists. Raises Outside if it cannot be read."""
        self._path = path
        self._files = files
        self._claims = self._load()

    @property
    def claims(self) -> tuple[PreparedClaim, ...]:
        return tuple(self._claims.values())

    def get(self, uid: str) -> PreparedClaim | None:
        return self._claims.get(uid)

    def put(self, claim: PreparedClaim) -> None:
        if self._claims.get(claim.uid) != claim:
            self._save({**self._claims, claim.uid: claim})

    def drop(self, uid: str) -> None:
        if uid in self._claims:
            self._save({key: claim for key, claim in self._claims.items() if key != uid})

    @property
    def held(self) -> tuple[HeldClaim, ...]:
        """The claims that hold something, with the requests that do."""
        return tuple(
            HeldClaim(namespace=claim.namespace, name=claim.name, uid=claim.uid, requests=requests)
            for claim in self.claims
            if (requests := tuple(each.grant for each in claim.requests if not each.admin))
        )

    @property
    def units(self) -> dict[str, str]:
        """The GPUs and MIG devices that claims hold by UUID, each with one of the claims."""
        return {share.gpu: str(claim) for claim in self.claims for share in claim.shares}

    def require_unclaimed(self, units: Iterable[str]) -> None:
        """Raises NotYet if a claim holds one of these GPUs and MIG devices, by UUID."""
        held = self.units
        for unit in units:
            if claim := held.get(unit):
                raise NotYet(f"{unit} is in use by the ResourceClaim {claim}; the container waits until that ends")

    @property
    def cdi_names(self) -> set[str]:
        """The CDI names of all requests."""
        return {cdi_name(claim.uid, each.name) for claim in self.claims for each in claim.requests}

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """The requests with limits as containers: the claim stands for the pod."""
        return self._as_allocations(lambda each: each.limited)

    @property
    def holders(self) -> tuple[Allocation, ...]:
        """All requests that hold something as containers, those without limits included."""
        return self._as_allocations(lambda each: not each.admin)

    def _as_allocations(self, wanted: Callable[[PreparedRequest], bool]) -> tuple[Allocation, ...]:
        return tuple(
            Allocation(
                name=cdi_name(claim.uid, each.name),
                tickets=frozenset(share.gpu for share in each.grant.shares),
                bound=Bound(
                    namespace=claim.namespace,
                    pod=claim.name,
                    pod_uid=claim.uid,
                    container=each.name,
                    gpus=tuple(share.gpu for share in each.grant.shares),
                    mode=each.grant.shares[0].mode,
                    grant=each.grant,
                ),
            )
            for claim in self.claims
            for each in claim.requests
            if wanted(each)
        )

    def _save(self, claims: dict[str, PreparedClaim]) -> None:
        file = _File(version=_VERSION, claims=tuple(claims.values()))
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(file, order="sorted"), indent=1))
        self._claims = claims

    def _load(self) -> dict[str, PreparedClaim]:
        content = self._files.read(self._path)
        if content is None:
            return {}
        try:
            file = msgspec.json.decode(content, type=_File)
        except msgspec.DecodeError as error:
            raise Outside(
                f"cannot read the record of claims {self._path}: {error}; without it the agent does not know which "
                "claims hold GPUs: move the file away, then delete and recreate the pods with claims on this node"
            ) from error
        if file.version != _VERSION:
            raise Outside(f"the record {self._path} has version {file.version}; this agent reads version {_VERSION}")
        return {claim.uid: claim for claim in file.claims}
