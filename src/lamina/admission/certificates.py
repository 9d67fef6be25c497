"""The serving certificate of admission, which Lamina creates itself.

Each renewal creates a new authority, signs one serving certificate with it and discards the authority's key, so that no
second certificate can be signed. The API server trusts the new authority and the previous one, because during the
renewal some replicas still serve the previous certificate.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509

from lamina.ports.certificates import SERVER, Authority, CertifiedKey, has_names, pem, signed_by

VALID = timedelta(days=365)
RENEW_BEFORE = VALID / 3
MAX_AHEAD = timedelta(days=7)
"""A certificate that begins later was made by a clock that was wrong by more, and is of no use for too long."""


class Certificate(NamedTuple):
    """PEM texts: trusted authorities (newest first), the serving certificate, its key."""

    authorities: bytes
    certificate: bytes
    key: bytes


def create(names: Iterable[str], now: datetime, *, previous: Certificate | None = None) -> Certificate:
    """A new certificate for these DNS names and IP addresses; the authority of `previous` stays trusted."""
    authority = Authority("admission", now, VALID)
    serving = authority.sign("lamina admission", SERVER, names)
    older = [pem(each) for each in (_authorities(previous)[:1] if previous else [])]
    return Certificate(b"".join((authority.certificate, *older)), serving.certificate, serving.key)


def authorities_of_both(certificate: Certificate, previous: Certificate | None) -> bytes:
    """The authorities of `certificate`, followed by the newest one of `previous` if it is not among them."""
    newest = [pem(authority) for authority in (_authorities(previous)[:1] if previous else [])]
    return certificate.authorities + b"".join(text for text in newest if text not in certificate.authorities)


def is_trusted(certificate: Certificate, bundle: bytes) -> bool:
    """Whether a client that trusts the authorities of `bundle` trusts the certificate."""
    newest = _authorities(certificate)[:1]
    return bool(newest) and pem(newest[0]) in bundle


def is_usable(certificate: Certificate, names: Iterable[str], now: datetime) -> bool:
    """Whether the certificate is complete, contains all of `names` and need not be renewed yet. One that is not valid
    yet counts, up to `MAX_AHEAD`: either clock may be wrong, and replicas would go on replacing each other's."""
    serving = signed_by(certificate.authorities, CertifiedKey(certificate.certificate, certificate.key))
    return (
        serving is not None
        and has_names(serving, names)
        and serving.not_valid_before_utc - MAX_AHEAD <= now < serving.not_valid_after_utc - RENEW_BEFORE
    )


def _authorities(certificate: Certificate) -> list[x509.Certificate]:
    """The trusted authorities; none where the text cannot be read, because the Secret may have been edited."""
    try:
        return x509.load_pem_x509_certificates(certificate.authorities)
    except ValueError:
        return []
