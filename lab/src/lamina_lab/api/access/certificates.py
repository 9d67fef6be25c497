"""The lab's certificate authority, and server certificates for 127.0.0.1 that it signs."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

VALID = datetime.timedelta(days=3650)
SLACK = datetime.timedelta(hours=1)


class KeyPair(Struct, frozen=True):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer)).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - SLACK).not_valid_after(now + VALID)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    encoding = serialization.Encoding.PEM
    return KeyPair(certificate.public_bytes(encoding), key.private_bytes(encoding, form, plain))


def authority(name: str = "lamina-lab-ca") -> KeyPair:
    """A new certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    builder = _builder(name, name, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pem(builder.sign(key, hashes.SHA256()), key)


def server(
    signer: KeyPair, hosts: tuple[str, ...] = ("localhost",), addresses: tuple[str, ...] = ("127.0.0.1",)
) -> KeyPair:
    """A server certificate for these names and addresses, signed by `signer`."""
    issuer = x509.load_pem_x509_certificate(signer.certificate)
    signing = serialization.load_pem_private_key(signer.key, None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise TypeError("the signer's key must be an elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    issuer_name = str(issuer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    public = signing.public_key()
    builder = _builder(hosts[0] if hosts else addresses[0], issuer_name, key.public_key())
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.SubjectAlternativeName(names), False),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(public), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return _pem(builder.sign(signing, hashes.SHA256()), key)
