"""The serving certificate in its Secret, where all replicas find the same one, and in the running HTTPS server."""

import base64
import contextlib
import ssl
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from lamina.control import certificates
from lamina.control.certificates import Certificate
from lamina.control.webhook_configuration import NAMESPACE
from lamina.errors import Outside
from lamina.ports.kube import NAMESPACES, SECRETS, AlreadyExists, Conflict, Kube, NotFound, Object

NAME = "lamina-admission"
_TRIES = 5


class CertificateStore:
    """Keeps the Secret and the TLS context up to date; the context's next handshake uses what was read last."""

    def __init__(self, kube: Kube, names: Sequence[str], *, now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._names = names
        self._now = now
        self._current: Certificate | None = None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    async def refresh(self) -> Certificate:
        """Agree on a certificate and serve it at once. Raises Outside."""
        certificate = await self.agree()
        self.serve(certificate)
        return certificate

    async def agree(self) -> Certificate:
        """The certificate in the Secret, renewed if it is time; it is not served by that. Raises Outside."""
        for _ in range(_TRIES):
            try:
                return await self._agreed()
            except Conflict:
                continue
        raise Outside(f"the Secret {NAMESPACE}/{NAME} changes faster than it can be written")

    async def _agreed(self) -> Certificate:
        """The certificate that all replicas use from now on. Raises Conflict where another one was faster."""
        try:
            secret = await self._kube.get(SECRETS, NAME, namespace=NAMESPACE)
        except NotFound:
            made = certificates.make(self._names, self._now(), before=self._current)
            await self._create(_secret(made))
            return made
        present = _certificate(secret)
        if certificates.serves(present, self._names, self._now()):
            return present
        made = certificates.make(self._names, self._now(), before=present)
        wanted = _secret(made)
        wanted["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"]
        await self._kube.replace(SECRETS, wanted)
        return made

    async def _create(self, secret: Object) -> None:
        try:
            await self._kube.create(SECRETS, secret)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            await self._kube.create(SECRETS, secret)

    def trusted(self, certificate: Certificate) -> bytes:
        """The authorities that the API server is to trust for this certificate, and for the one served until then. They
        may know nothing of each other, where a replica that has just started made the later one."""
        return certificates.united(certificate, self._current)

    def serve(self, certificate: Certificate) -> None:
        """Use the certificate from the next handshake on."""
        if certificate == self._current:
            return
        # The ssl module reads files only; the key is on disk for no longer than that takes.
        with tempfile.TemporaryDirectory(prefix="lam") as directory:
            chain, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
            chain.write_bytes(certificate.certificate)
            key.touch(mode=0o600)
            key.write_bytes(certificate.key)
            self.context.load_cert_chain(chain, key)
        self._current = certificate


def _secret(certificate: Certificate) -> Object:
    data = {"ca.crt": certificate.authorities, "tls.crt": certificate.certificate, "tls.key": certificate.key}
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(pem).decode() for name, pem in data.items()},
    }


def _certificate(secret: Object) -> Certificate:
    data = secret.get("data") or {}
    parts = (_decoded(data.get(name)) for name in ("ca.crt", "tls.crt", "tls.key"))
    return Certificate(*parts)


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except ValueError:
        return b""
