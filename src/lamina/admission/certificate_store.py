"""The serving certificate in a Secret, from which all replicas take it, and which of its versions is served."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from lamina.admission import certificates
from lamina.admission.certificates import Certificate
from lamina.core.component_names import ADMISSION_SECRET
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import SECRETS, Conflict, Kube, NotFound, Object
from lamina.ports.kube.secret_objects import content_of, create_secret, secret_object

_TRIES = 5


class CertificateStore:
    """Keeps the Secret up to date. `names` are those that the certificate must contain.

    `listeners` are called when another certificate is to be served from then on.
    """

    def __init__(self, kube: Kube, clock: Clock, names: Sequence[str]) -> None:
        self._kube = kube
        self._names = names
        self._clock = clock
        self._current: Certificate | None = None
        self.listeners: list[Callable[[], None]] = []

    @property
    def served(self) -> Certificate | None:
        """The certificate to serve; None before the first."""
        return self._current

    async def refresh(self) -> Certificate:
        """Agree on a certificate and serve it at once. Raises Outside."""
        certificate = await self.agree()
        self.serve(certificate)
        return certificate

    async def agree(self) -> Certificate:
        """The certificate in the Secret, renewed if it is time. This does not serve it yet. Raises Outside."""
        for _ in range(_TRIES):
            try:
                return await self._read_or_renew()
            except Conflict:
                continue
        raise Outside(
            f"the Secret {self._kube.lamina_namespace}/{ADMISSION_SECRET} changes faster than it can be updated"
        )

    async def _read_or_renew(self) -> Certificate:
        """The certificate that all replicas use from now on. Raises Conflict where another replica was faster."""
        try:
            secret = await self._kube.get(SECRETS, ADMISSION_SECRET, namespace=self._kube.lamina_namespace)
        except NotFound:
            renewed = certificates.create(self._names, self._now(), previous=self._current)
            await create_secret(self._kube, self._secret(renewed))
            return renewed
        present = _certificate(secret)
        if certificates.is_usable(present, self._names, self._now()):
            return present
        renewed = certificates.create(self._names, self._now(), previous=present)
        wanted = self._secret(renewed)
        wanted["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"]
        await self._kube.replace(SECRETS, wanted)
        return renewed

    def _secret(self, certificate: Certificate) -> Object:
        content = {"ca.crt": certificate.authorities, "tls.crt": certificate.certificate, "tls.key": certificate.key}
        return secret_object(self._kube.lamina_namespace, ADMISSION_SECRET, content)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)

    def trusted_authorities(self, certificate: Certificate) -> bytes:
        """The authorities that the API server must trust for this certificate, and for the one served until then.

        The certificate itself may not include the latter's, if a replica that has just started created it.
        """
        return certificates.authorities_of_both(certificate, self._current)

    def serve(self, certificate: Certificate) -> None:
        """Use the certificate from the next TLS handshake on."""
        if certificate == self._current:
            return
        self._current = certificate
        for listener in self.listeners:
            listener()


def _certificate(secret: Object) -> Certificate:
    return Certificate(*(content_of(secret, name) for name in ("ca.crt", "tls.crt", "tls.key")))
