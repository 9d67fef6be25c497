"""The serving certificate of admission, which Lamina creates itself.

Each renewal creates a new authority, signs one serving certificate with it and discards the authority's key, so that no
second certificate can be signed. The API server trusts the new authority and the previous one, because during the
renewal some replicas still serve the previous certificate.
"""

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=365)
RENEW_BEFORE = VALID / 3
_SKEW = timedelta(hours=1)
"""How far the clocks of other machines may be behind."""


class Certificate(NamedTuple):
    """PEM texts: trusted authorities (newest first), the serving certificate, its key."""

    authorities: bytes
    certificate: bytes
    key: bytes


def create(names: Iterable[str], now: datetime, *, previous: Certificate | None = None) -> Certificate:
    """A new certificate for these DNS names and IP addresses; the authority of `previous` stays trusted."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name(f"lamina admission authority {now:%Y-%m-%dT%H:%M:%SZ}")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    serving = (
        _builder(_name("lamina admission"), authority_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    older = _authorities(previous)[:1] if previous else []
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(b"".join(_pem(certificate) for certificate in (authority, *older)), _pem(serving), key_pem)


def authorities_of_both(certificate: Certificate, previous: Certificate | None) -> bytes:
    """The authorities of `certificate`, followed by the newest one of `previous` if it is not among them."""
    newest = [_pem(authority) for authority in (_authorities(previous)[:1] if previous else [])]
    return certificate.authorities + b"".join(pem for pem in newest if pem not in certificate.authorities)


def is_usable(certificate: Certificate, names: Iterable[str], now: datetime) -> bool:
    """Whether the certificate is complete, contains all of `names` and need not be renewed yet."""
    try:
        (serving,) = x509.load_pem_x509_certificates(certificate.certificate)
        authority = _authorities(certificate)[0]
        key = serialization.load_pem_private_key(certificate.key, None)
        named = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        serving.verify_directly_issued_by(authority)
    except (ValueError, TypeError, IndexError, x509.ExtensionNotFound, InvalidSignature):
        return False
    return (
        key.public_key() == serving.public_key()
        and {_general_name(name) for name in names} <= set(named)
        and serving.not_valid_before_utc <= now < serving.not_valid_after_utc - RENEW_BEFORE
    )


def _authorities(certificate: Certificate) -> list[x509.Certificate]:
    """The trusted authorities; none where the text cannot be read, because the Secret may have been edited."""
    try:
        return x509.load_pem_x509_certificates(certificate.authorities)
    except ValueError:
        return []


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SKEW)
        .not_valid_after(now.astimezone(UTC) + VALID)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    """The serving key signs handshakes; the authority's key signs certificates."""
    return x509.KeyUsage(
        digital_signature=sign,
        key_cert_sign=not sign,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
