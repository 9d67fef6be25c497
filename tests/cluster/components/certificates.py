"""The cluster's certificates, and files by which programs and people log in."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = "stage"


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    """Signs for one cluster, whose API server is at `server`; everything lies in `folder`."""

    def __init__(self, folder: Path, server: str) -> None:
        folder.mkdir(parents=True)
        self._folder, self._server = folder, server
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stage-ca")])
        made = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), True
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        self.key = self._write_key("ca", self._key)

    def signed(self, name: str, common: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> Pair:
        """A certificate for a server at `hosts` and for a client called `common` in `groups`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common))
        usage = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        made = self._builder(x509.Name(subject), key).add_extension(x509.ExtendedKeyUsage(usage), False)
        if hosts:
            made = made.add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), False)
        path = self._folder / f"{name}.crt"
        path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return Pair(path, self._write_key(name, key))

    def account_key(self) -> Path:
        """The key with which tokens of service accounts are signed."""
        return self._write_key("accounts", ec.generate_private_key(ec.SECP256R1()))

    def kubeconfig(self, name: str, common: str, groups: tuple[str, ...] = ()) -> Path:
        """A file with which `common` logs in."""
        pair = self.signed(name, common, groups)
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": NAME, "cluster": {"server": self._server, "certificate-authority": str(self.certificate)}}
            ],
            "users": [{"name": common, "user": user}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": common}}],
            "current-context": NAME,
        }
        path = self._folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
            now + datetime.timedelta(days=2)
        )

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self._folder / f"{name}.key"
        path.touch(mode=0o600)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        return path


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
