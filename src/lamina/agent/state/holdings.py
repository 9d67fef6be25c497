"""Who holds GPUs and MIG devices of the node: containers of pods, and requests of ResourceClaims. Plain data.

A holding has a CDI name of its own, by which the container runtime adds what was made for it.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.sharing import TimeSlice
from lamina.dra.claims import ClaimedDevice
from lamina.dra.combinations import RequestRef
from lamina.dra.names import cdi_name
from lamina.dra.shares import together

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
    """The container that a name belongs to. If it is `of_claim`, a claim and its request take the places of the pod and
    its container."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    grant: ContainerGrant
    """What the container may use."""
    of_claim: bool = False

    @property
    def gpus(self) -> tuple[str, ...]:
        """UUIDs of the GPUs and MIG devices that the container uses."""
        return tuple(share.gpu for share in self.grant.shares)

    @property
    def mode(self) -> Mode:
        """The mode of its GPUs: there are MIG instances, clients of MPS, or others."""
        modes = [share.mode for share in self.grant.shares]
        return Mode.QUOTA if Mode.QUOTA in modes else modes[0]

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The MIG instances that the container has."""
        return tuple(each for share in self.grant.shares if (each := instance_of(share)) is not None)

    def __str__(self) -> str:
        return f"{'ResourceClaim' if self.of_claim else 'pod'} {self.namespace}/{self.pod}"


class Holding(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`name` was handed out for the devices `tickets` of `resource`; for those of a claim, which have no resource,
    these are UUIDs. Without `bound`, its container is not known yet."""

    name: str
    tickets: DeviceIds
    resource: str = ""
    bound: Bound | None = None


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
    def intervals(self) -> dict[str, TimeSlice]:
        """The lengths of turns that it has for its GPUs, by UUID."""
        return {
            share.gpu: each.interval
            for each in self.requests
            if each.interval is not None
            for share in each.grant.shares
        }

    @property
    def devices(self) -> tuple[ClaimedDevice, ...]:
        return tuple(device for each in self.requests for device in each.devices)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def account_shares(claims: Iterable[PreparedClaim], account: RequestRef) -> tuple[Share, ...]:
    """What the containers of an account have together, by GPU."""
    return together(
        share
        for claim in claims
        for each in claim.requests
        if each.account_in(claim.uid) == account and not each.admin
        for share in each.grant.shares
    )


def account_priority(claims: Iterable[PreparedClaim], account: RequestRef) -> int | None:
    """That of the containers of an account, the highest of its requests."""
    named = (
        each.grant.priority for claim in claims for each in claim.requests if each.account_in(claim.uid) == account
    )
    return min((priority for priority in named if priority is not None), default=None)


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


def claim_holdings(claims: Mapping[str, PreparedClaim]) -> tuple[Holding, ...]:
    """All accounts with limits, and all requests without limits that hold something. `claims` are by UID."""
    limited = dict.fromkeys(
        each.account_in(claim.uid) for claim in claims.values() for each in claim.requests if each.limited
    )
    others = (
        RequestRef(claim.uid, each.name)
        for claim in claims.values()
        for each in claim.requests
        if not each.admin and each.account_in(claim.uid) not in limited
    )
    return tuple(_claim_holding(claims, ref, limited=ref in limited) for ref in (*limited, *others))


def _claim_holding(claims: Mapping[str, PreparedClaim], ref: RequestRef, *, limited: bool) -> Holding:
    claim = claims[ref.claim]
    grant = next(each.grant for each in claim.requests if each.name == ref.request)
    shares, priority = grant.shares, grant.priority
    if limited:
        shares, priority = account_shares(claims.values(), ref), account_priority(claims.values(), ref)
    return Holding(
        name=cdi_name(claim.uid, ref.request),
        tickets=frozenset(share.gpu for share in shares),
        bound=Bound(
            namespace=claim.namespace,
            pod=claim.name,
            pod_uid=claim.uid,
            container=ref.request,
            grant=structs.replace(grant, shares=shares, priority=priority),
            of_claim=True,
        ),
    )
