"""The certificates of the extender and of kube-scheduler, which Lamina creates itself, and when they are replaced.

A generation is an authority with one certificate for the extender and one for its client. kube-scheduler reads the
authorities that it trusts only at its start, so a generation is created long before it is used. Until then it is only
trusted: every scheduler that starts in the meantime accepts both.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lamina.core.component_names import EXTENDER_CLIENT_SECRET, EXTENDER_SECRET, extender_name
from lamina.errors import Outside
from lamina.ports.certificates import CLIENT, SERVER, Authority, CertifiedKey, has_names, signed_by
from lamina.ports.clock import Clock
from lamina.ports.kube import SECRETS, AlreadyExists, Conflict, Kube, NotFound, Object
from lamina.ports.kube.secret_objects import content_of, create_secret, secret_object

VALID = timedelta(days=3 * 365)
FOLLOWED_BEFORE = VALID / 2
"""How long before the end the next generation is created. No version of Kubernetes is supported for longer than 14
months, so schedulers are restarted in that time."""
USED_UNTIL = timedelta(days=7)
"""How long before the end the next generation is used."""

MAX_AHEAD = timedelta(days=7)
"""A generation that begins later was made by a clock that was wrong by more, and is of no use for too long."""


class Generation(NamedTuple):
    """An authority (PEM) and what it signed."""

    authority: bytes
    server: CertifiedKey
    client: CertifiedKey

    def end(self, now: datetime, name: str) -> datetime | None:
        """Until when all of it is valid for an extender of that name; None if it cannot be used.

        One that is not valid yet counts as valid, up to `MAX_AHEAD`: another replica made it, and either clock may be
        wrong. The running scheduler would trust no other.
        """
        server, client = signed_by(self.authority, self.server), signed_by(self.authority, self.client)
        if server is None or client is None or not has_names(server, [name]):
            return None
        end = min(server.not_valid_after_utc, client.not_valid_after_utc)
        return end if max(server.not_valid_before_utc, client.not_valid_before_utc) - MAX_AHEAD <= now < end else None


class Issued(NamedTuple):
    """The generation in use, and the one after it once it exists."""

    current: Generation
    following: Generation | None = None

    @property
    def authorities(self) -> bytes:
        """The authorities that both sides trust."""
        return self.current.authority + (self.following.authority if self.following else b"")


def create(now: datetime, name: str) -> Generation:
    """A new generation for an extender of that name."""
    authority = Authority("extender", now, VALID)
    server = authority.sign("lamina extender", SERVER, [name])
    return Generation(authority.certificate, server, authority.sign("lamina scheduler", CLIENT))


def renewed(present: Iterable[Generation], now: datetime, name: str) -> Issued:
    """What is in force now, given the generations that exist, the one in use first."""
    usable = [(each, end) for each in present if (end := each.end(now, name)) is not None]
    if len(usable) > 1 and usable[0][1] - now < USED_UNTIL:
        del usable[0]
    if not usable:
        return Issued(create(now, name))
    if len(usable) == 1:
        (current, end), following = usable[0], None
    else:
        (current, end), (following, _), *_ = usable
    if following is None and end - now < FOLLOWED_BEFORE:
        following = create(now, name)
    return Issued(current, following)


_TRIES = 5
_PREFIXES = ("", "following-")


class IssuedStore:
    """Keeps two Secrets up to date: one for the controllers, and one for kube-scheduler.

    The first has all that exists, and decides. The second follows from it.
    """

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self.namespace = kube.lamina_namespace
        self._name = extender_name(self.namespace)

    async def agree(self) -> Issued:
        """The certificates that all replicas use, renewed if it is time. Raises Outside."""
        for _ in range(_TRIES):
            try:
                issued = await self._read_or_renew()
                await self._write(secret_object(self.namespace, EXTENDER_CLIENT_SECRET, _client_content(issued)))
            except (Conflict, AlreadyExists):
                continue
            return issued
        raise Outside(f"the Secrets of the extender in {self.namespace} change faster than they can be updated")

    async def _read_or_renew(self) -> Issued:
        secret = await self._read(EXTENDER_SECRET)
        issued = renewed([] if secret is None else _generations(secret), self._now(), self._name)
        await self._write(secret_object(self.namespace, EXTENDER_SECRET, _server_content(issued)), secret)
        return issued

    async def _read(self, name: str) -> Object | None:
        try:
            return await self._kube.get(SECRETS, name, namespace=self.namespace)
        except NotFound:
            return None

    async def _write(self, wanted: Object, present: Object | None = None) -> None:
        """Write what differs. Raises Conflict and AlreadyExists where another replica was faster."""
        present = present or await self._read(wanted["metadata"]["name"])
        if present is None:
            await create_secret(self._kube, wanted)
        elif present.get("data") != wanted["data"]:
            version = present["metadata"]["resourceVersion"]
            metadata = wanted["metadata"] | {"resourceVersion": version}
            # The type of a Secret cannot change.
            kept = {"type": present["type"]} if "type" in present else {}
            await self._kube.replace(SECRETS, wanted | kept | {"metadata": metadata})

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)


def _server_content(issued: Issued) -> dict[str, bytes]:
    content = {"ca.crt": issued.authorities}
    for prefix, each in zip(_PREFIXES, issued, strict=True):
        if each is not None:
            pairs = {"tls": each.server, "client": each.client}
            content[f"{prefix}authority.crt"] = each.authority
            content |= {f"{prefix}{name}.crt": pair.certificate for name, pair in pairs.items()}
            content |= {f"{prefix}{name}.key": pair.key for name, pair in pairs.items()}
    return content


def _client_content(issued: Issued) -> dict[str, bytes]:
    client = issued.current.client
    return {"ca.crt": issued.authorities, "tls.crt": client.certificate, "tls.key": client.key}


def _generations(secret: Object) -> list[Generation]:
    def pair(name: str) -> CertifiedKey:
        return CertifiedKey(content_of(secret, f"{name}.crt"), content_of(secret, f"{name}.key"))

    return [
        Generation(content_of(secret, f"{prefix}authority.crt"), pair(f"{prefix}tls"), pair(f"{prefix}client"))
        for prefix in _PREFIXES
    ]
