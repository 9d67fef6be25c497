"""The extender over TLS: who has a certificate of the right authority, and what happens when certificates change."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lamina.controller.extender.client_certificates import ExtenderTls, MountedCertificates
from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.kube.fake import FakeKube
from lamina.ports.listener import Address
from tests.waiting import until

FREE = Address("127.0.0.1", 0)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
_CRITICAL = (x509.BasicConstraints, x509.KeyUsage, x509.SubjectAlternativeName)
_SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Issuer:
    """An authority, and the directories of certificates that it signs."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = self._sign(self._name, self._key.public_key(), constraints, _SIGNING)

    def fill(self, directory: Path, usage: x509.ObjectIdentifier) -> Path:
        """A directory as a Secret is mounted, with a new certificate for that usage."""
        key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
        address = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        signed = self._sign(name, key.public_key(), x509.ExtendedKeyUsage([usage]), address)
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        directory.mkdir(exist_ok=True)
        (directory / "tls.crt").write_bytes(pem(signed))
        (directory / "tls.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
        (directory / "ca.crt").write_bytes(pem(self.certificate))
        return directory

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        # What strict clients demand, which Python's are from 3.13 on.
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension in (*extensions, own, authority):
            builder = builder.add_extension(extension, critical=isinstance(extension, _CRITICAL))
        return builder.sign(self._key, hashes.SHA256())


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def client_context(server: Path, own: Path | None = None) -> ssl.SSLContext:
    """A client that trusts the server's authority, with a certificate of its own."""
    context = ssl.create_default_context(cafile=server / "ca.crt")
    if own is not None:
        context.load_cert_chain(own / "tls.crt", own / "tls.key")
    return context


@asynccontextmanager
async def extender(directory: Path, tmp_path: Path) -> AsyncIterator[str]:
    """The URL of a controller's extender with the certificates of a directory."""
    addresses, stop = tmp_path / "addresses.json", asyncio.Event()
    settings = ControllerSettings(extender=FREE, admission=FREE, addresses_file=addresses, extender_tls=directory)
    task = asyncio.create_task(serve(FakeKube(), SystemClock(), settings, stop))
    await until(addresses.exists, task=task)
    yield msgspec.json.decode(addresses.read_bytes())["extender"].replace("127.0.0.1", "localhost")
    stop.set()
    await task


async def asked(url: str, context: ssl.SSLContext) -> int:
    """The status of an answer, 0 where there is none."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{url}/healthz", ssl=context) as response:
                return response.status
        except aiohttp.ClientError:
            return 0


async def test_only_clients_of_the_authority_are_answered(tmp_path: Path) -> None:
    ours, another = Issuer("ours"), Issuer("another")
    server, client = ours.fill(tmp_path / "server", SERVER), ours.fill(tmp_path / "client", CLIENT)
    foreign = another.fill(tmp_path / "foreign", CLIENT)
    async with extender(server, tmp_path) as url:
        assert url.startswith("https://")
        assert await asked(url, client_context(server, client)) == 200
        assert await asked(url, client_context(server)) == 0
        assert await asked(url, client_context(server, foreign)) == 0
        assert await asked(url, client_context(server, server)) == 0, "a certificate of a server is none of a client"
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(url.replace("https", "http") + "/healthz")


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    ours, clock = Issuer("ours"), FakeClock()
    server = ours.fill(tmp_path / "server", SERVER)
    tls = ExtenderTls(MountedCertificates(server))
    await tls.load()
    before = await served(tls)
    task = asyncio.create_task(tls.follow(clock))
    (server / "tls.key").write_text("half written")
    await clock.advance(60)
    assert await served(tls) == before
    ours.fill(server, SERVER)
    await clock.advance(60)
    assert await served(tls) == (server / "tls.crt").read_bytes() != before
    task.cancel()


async def served(tls: ExtenderTls) -> bytes:
    """The certificate that a client sees."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=tls.context)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(found).encode()


@pytest.mark.parametrize("file", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
async def test_files_that_do_not_fit_are_refused_with_their_names(
    tmp_path: Path, file: str, content: bytes | None
) -> None:
    server = Issuer("ours").fill(tmp_path / "server", SERVER)
    if content is None:
        (server / file).unlink()
    else:
        (server / file).write_bytes(content)
    with pytest.raises(BadInput, match=r"must have a certificate in tls\.crt, its key in tls\.key"):
        await ExtenderTls(MountedCertificates(server)).load()
