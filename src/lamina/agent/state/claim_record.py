"""The claims that are prepared on this node, or that a call has begun to prepare or to unprepare.

A claim is on disk before anything is made for it, and is forgotten after everything is removed, so an interrupted call
leaves nothing unknown and can be repeated. A claim that is not `ready` has no container: kubelet has had no answer yet,
or has been asked to forget it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from lamina.agent.state.record import Allocation, Bound, instance_of
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.sharing import TimeSlice
from lamina.dra.claims import ClaimedDevice
from lamina.dra.combinations import RequestRef
from lamina.dra.names import cdi_name
from lamina.dra.shares import together
from lamina.errors import NotYet, Outside
from lamina.ports.files import Files


class PreparedMps(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The MPS daemon of a request, as in RequestMps. `root` is the directory of MPS when it was prepared."""

    root: str
    gpu: str
    memory_mib: int
    threads_percent: int
    exclusive: bool = False


class PreparedRequest(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A request of a claim, whose containers share one account. `limited`: the facade holds their limits.

    `account` is the request in whose account it is where containers use both, and `visible` are the requests whose
    devices its containers see. Without them, both are this request alone.
    """

    name: str
    grant: ContainerGrant
    devices: tuple[ClaimedDevice, ...]
    limited: bool = False
    admin: bool = False
    account: RequestRef | None = None
    visible: tuple[RequestRef, ...] = ()
    mps: PreparedMps | None = None
    interval: TimeSlice | None = None
    """The length of turns on its GPU; None leaves it as it is."""

    def account_in(self, claim: str) -> RequestRef:
        """Its account. `claim` is the UID of its claim."""
        return self.account or RequestRef(claim, self.name)

    def seen_in(self, claim: str) -> tuple[RequestRef, ...]:
        return self.visible or (RequestRef(claim, self.name),)


class PreparedClaim(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`pods` are the UIDs of the pods for which it was reserved when it was prepared. `asked`: kubelet has asked for
    it, so containers may use it."""

    namespace: str
    name: str
    uid: str
    requests: tuple[PreparedRequest, ...]
    pods: tuple[str, ...] = ()
    ready: bool = False
    asked: bool = True

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

    def pods_of(self, owner: str) -> tuple[str, ...]:
        """The UIDs of the pods whose containers use an account. `owner` is the UID of its claim, or of its pod."""
        claim = self._claims.get(owner)
        return (owner,) if claim is None else claim.pods

    def put(self, *claims: PreparedClaim) -> None:
        """Record them in one step."""
        changed = {claim.uid: claim for claim in claims if self._claims.get(claim.uid) != claim}
        if changed:
            self._save({**self._claims, **changed})

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

    @property
    def intervals(self) -> dict[str, TimeSlice]:
        """The lengths of turns that claims have for their GPUs, by UUID."""
        return {
            share.gpu: each.interval
            for claim in self.claims
            for each in claim.requests
            if each.interval is not None
            for share in each.grant.shares
        }

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
        """The accounts with limits as containers: a claim stands for the pod, and a request for the container."""
        return tuple(_allocation(self._claims, ref, limited=True) for ref in self._accounts)

    @property
    def holders(self) -> tuple[Allocation, ...]:
        """All accounts, and requests without limits, that hold something, as containers."""
        others = (
            _allocation(self._claims, RequestRef(claim.uid, each.name), limited=False)
            for claim in self.claims
            for each in claim.requests
            if not each.admin and each.account_in(claim.uid) not in self._accounts
        )
        return (*self.allocations, *others)

    @property
    def _accounts(self) -> tuple[RequestRef, ...]:
        """Those with limits."""
        found = (each.account_in(claim.uid) for claim in self.claims for each in claim.requests if each.limited)
        return tuple(dict.fromkeys(found))

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


def account_shares(claims: Iterable[PreparedClaim], account: RequestRef) -> tuple[Share, ...]:
    """What the containers of an account have together, by GPU."""
    return together(
        share
        for claim in claims
        for each in claim.requests
        if each.account_in(claim.uid) == account and not each.admin
        for share in each.grant.shares
    )


def shares_of(claims: Iterable[PreparedClaim], refs: Iterable[RequestRef]) -> tuple[Share, ...]:
    """The shares of these requests, by GPU."""
    wanted = set(refs)
    return together(
        share
        for claim in claims
        for each in claim.requests
        if RequestRef(claim.uid, each.name) in wanted
        for share in each.grant.shares
    )


def _allocation(claims: Mapping[str, PreparedClaim], ref: RequestRef, *, limited: bool) -> Allocation:
    claim = claims[ref.claim]
    grant = next(each.grant for each in claim.requests if each.name == ref.request)
    shares = account_shares(claims.values(), ref) if limited else grant.shares
    return Allocation(
        name=cdi_name(claim.uid, ref.request),
        tickets=frozenset(share.gpu for share in shares),
        bound=Bound(
            namespace=claim.namespace,
            pod=claim.name,
            pod_uid=claim.uid,
            container=ref.request,
            gpus=tuple(share.gpu for share in shares),
            mode=Mode.QUOTA if any(share.mode is Mode.QUOTA for share in shares) else shares[0].mode,
            instances=tuple(each for share in shares if (each := instance_of(share)) is not None),
            grant=structs.replace(grant, shares=shares),
        ),
    )
