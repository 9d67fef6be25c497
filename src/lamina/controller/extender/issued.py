"""The certificates of the extender and of kube-scheduler, which Lamina creates itself, and when they are replaced.

A generation is an authority with one certificate for the extender and one for its client. kube-scheduler reads the
authorities that it trusts only at its start, so a generation is created long before it is used. Until then it is only
trusted: every scheduler that starts in the meantime accepts both.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from lamina.core.component_names import EXTENDER_NAME
from lamina.ports.certificates.authority import CLIENT, SERVER, Authority, CertifiedKey, has_names, signed_by

VALID = timedelta(days=3 * 365)
FOLLOWED_BEFORE = VALID / 2
"""How long before the end the next generation is created. No version of Kubernetes is supported for longer than 14
months, so schedulers are restarted in that time."""
USED_UNTIL = timedelta(days=7)
"""How long before the end the next generation is used."""


class Generation(NamedTuple):
    """An authority (PEM) and what it signed."""

    authority: bytes
    server: CertifiedKey
    client: CertifiedKey

    def end(self, now: datetime) -> datetime | None:
        """Until when all of it is valid; None if it cannot be used now."""
        server, client = signed_by(self.authority, self.server), signed_by(self.authority, self.client)
        if server is None or client is None or not has_names(server, [EXTENDER_NAME]):
            return None
        end = min(server.not_valid_after_utc, client.not_valid_after_utc)
        return end if max(server.not_valid_before_utc, client.not_valid_before_utc) <= now < end else None


class Issued(NamedTuple):
    """The generation in use, and the one after it once it exists."""

    current: Generation
    following: Generation | None = None

    @property
    def authorities(self) -> bytes:
        """The authorities that both sides trust."""
        return self.current.authority + (self.following.authority if self.following else b"")


def create(now: datetime) -> Generation:
    """A new generation."""
    authority = Authority("extender", now, VALID)
    server = authority.sign("lamina extender", SERVER, [EXTENDER_NAME])
    return Generation(authority.certificate, server, authority.sign("lamina scheduler", CLIENT))


def renewed(present: Iterable[Generation], now: datetime) -> Issued:
    """What is in force now, given the generations that exist, the one in use first."""
    usable = [(each, end) for each in present if (end := each.end(now)) is not None]
    if len(usable) > 1 and usable[0][1] - now < USED_UNTIL:
        del usable[0]
    if not usable:
        return Issued(create(now))
    if len(usable) == 1:
        (current, end), following = usable[0], None
    else:
        (current, end), (following, _), *_ = usable
    if following is None and end - now < FOLLOWED_BEFORE:
        following = create(now)
    return Issued(current, following)
