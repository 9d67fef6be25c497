"""Certificates: an authority that lives for a moment and never stores its key, and the TLS context of a server."""

import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
_SKEW = timedelta(days=1)
"""How far the clocks of other machines may be behind."""


class CertifiedKey(NamedTuple):
    """PEM texts: a certificate and its key."""

    certificate: bytes
    key: bytes


class Authority:
    """A new authority. Without its key, which this object alone has, no further certificate can be signed."""

    def __init__(self, purpose: str, now: datetime, valid: timedelta) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        self._name = _name(f"lamina {purpose} authority {now:%Y-%m-%dT%H:%M:%SZ}")
        self._now, self._valid = now.astimezone(UTC), valid
        public = self._key.public_key()
        built = (
            self._builder(self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        self.certificate = pem(built.sign(self._key, hashes.SHA256()))

    def sign(self, name: str, usage: x509.ObjectIdentifier, names: Iterable[str] = ()) -> CertifiedKey:
        """A new certificate for one usage, with these DNS names and IP addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name(name), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if named := [_general_name(each) for each in names]:
            builder = builder.add_extension(x509.SubjectAlternativeName(named), critical=False)
        builder = builder.add_extension(self._identifier, critical=False)
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        certificate = builder.sign(self._key, hashes.SHA256())
        return CertifiedKey(pem(certificate), key.private_bytes(serialization.Encoding.PEM, *form))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + self._valid)
        )


def signed_by(authority: bytes, pair: CertifiedKey) -> x509.Certificate | None:
    """The certificate, if this authority signed it and the key is its own; texts may be anything."""
    try:
        (certificate,) = x509.load_pem_x509_certificates(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificates(authority)[0])
    except (ValueError, TypeError, IndexError, InvalidSignature):
        return None
    return certificate if key.public_key() == certificate.public_key() else None


def has_names(certificate: x509.Certificate, names: Iterable[str]) -> bool:
    """Whether the certificate contains all of these DNS names and IP addresses."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return {_general_name(name) for name in names} <= set(found)


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, sign: bool) -> x509.KeyUsage:
    """A certificate's key signs handshakes; the authority's key signs certificates."""
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


def server_context() -> ssl.SSLContext:
    """A context without a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def use_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use this certificate from the next handshake on. Both are PEM."""
    # The ssl module only reads files; the key is on disk no longer than necessary.
    with tempfile.TemporaryDirectory(prefix="lam") as directory:
        chain_file, key_file = Path(directory, "tls.crt"), Path(directory, "tls.key")
        chain_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        context.load_cert_chain(chain_file, key_file)
