"""The certificate that admission serves: the one of the Secret, from the moment on that the API server trusts it."""

import asyncio
import base64
import logging
import ssl

from lamina.admission import certificates
from lamina.admission.certificate_store import CertificateStore
from lamina.admission.certificates import Certificate
from lamina.core.component_names import WEBHOOKS
from lamina.errors import Outside
from lamina.ports.certificates import use_certificate
from lamina.ports.clock import Clock
from lamina.ports.kube import MUTATING_WEBHOOKS, Kube, NotFound
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_CHECK_S = 10.0
_RETRY_S = 1.0
_SETTLE_S = 5.0
"""By then all API servers have noticed a changed registration."""


class ServedCertificate:
    """Puts it into `tls`. Nothing is served before `ready` is set."""

    def __init__(self, kube: Kube, clock: Clock, store: CertificateStore, tls: ssl.SSLContext) -> None:
        self._kube = kube
        self._clock = clock
        self._store = store
        self._tls = tls
        self.ready = asyncio.Event()

    async def follow(self) -> None:
        """Serve what is in the Secret until canceled."""
        failures = FailureLog(log, "The certificate is unchanged: %s")
        await poll(self.reconcile, self._clock, every_s=_CHECK_S, retry_s=_RETRY_S, failures=failures)

    async def reconcile(self) -> None:
        """Serve the certificate of the Secret, if it is another one and trusted. Raises Outside."""
        certificate = await self._store.agree()
        if certificate == self._store.served:
            return
        if not await self._is_trusted(certificate):
            raise Outside("the API server does not trust the newest one yet; the controller that leads registers it")
        if self._store.served is not None:
            await self._clock.sleep(_SETTLE_S)
        use_certificate(self._tls, certificate.certificate, certificate.key)
        self._store.serve(certificate)
        self.ready.set()

    async def _is_trusted(self, certificate: Certificate) -> bool:
        """Whether each registered webhook trusts it; true where none is registered yet."""
        try:
            registered = await self._kube.get(MUTATING_WEBHOOKS, WEBHOOKS)
        except NotFound:
            return True
        bundles = [each["clientConfig"].get("caBundle", "") for each in registered.get("webhooks") or ()]
        return all(certificates.is_trusted(certificate, base64.b64decode(each)) for each in bundles)
