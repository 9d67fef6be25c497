"""Keeps the webhook registered, with the certificate and the resource names in force. The leader does so.

The registration is watched, so that it is restored as soon as others remove or change it, as tools do that apply what a
repository has. Both are checked every few minutes too, so that the certificate is renewed in time. Replicas serve a
new certificate only after its authority was registered and the API servers had time to notice, see
`served_certificate`. Until then they serve the previous one, whose authority stays registered as well.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from lamina.admission.certificate_store import CertificateStore
from lamina.admission.webhook_configuration import register, service_address, url_address
from lamina.config_source.live import LiveConfiguration
from lamina.core.component_names import ADMISSION_SERVICE, WEBHOOKS
from lamina.errors import Outside
from lamina.ports.clock import Clock, within
from lamina.ports.kube import MUTATING_WEBHOOKS, Kube, NotFound, follow
from lamina.ports.kube.follow import SYNCED
from lamina.ports.listener import Address
from lamina.ports.polling import FailureLog

log = logging.getLogger(__name__)

_CHECK_S = 300.0
_SETTLE_S = 5.0
"""By then all API servers have noticed a changed registration."""
_POLL_S = 0.1
"""How often a replica that is not ready checks whether it is."""
_RETRY_PAUSES_S = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, _CHECK_S)
"""After failures in a row."""


def certificate_names(namespace: str, host: str) -> list[str]:
    """The names that the serving certificate must contain. `namespace` is Lamina's, and `host` is where the API server
    reaches admission directly; empty where it uses the Service."""
    service = f"{ADMISSION_SERVICE}.{namespace}.svc"
    return [service, f"{service}.cluster.local", *filter(None, [host])]


def client_config(namespace: str, address: Address | None) -> Mapping[str, Any]:
    """How the API server reaches admission: directly at this address, or by the Service in Lamina's
    namespace."""
    return service_address(namespace) if address is None else url_address(*address)


class WebhookRegistration:
    """Updates the registration whenever it is time, or the configuration has changed."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        configuration: LiveConfiguration,
        store: CertificateStore,
        address: Mapping[str, Any],
        *,
        claims: bool = False,
    ) -> None:
        """`claims`: agents serve ResourceClaims."""
        self._kube = kube
        self._clock = clock
        self._configuration = configuration
        self._store = store
        self._address = address
        self._claims = claims
        self._due = asyncio.Event()
        self._changes, self._settled = 0, False
        """Of the registration, own ones included. Those that come while it settles are seen by the check after that."""
        configuration.listeners.append(self._due.set)

    async def reconcile(self) -> float:
        """Check once, and write what differs. Returns after how many seconds to check again. Raises Outside."""
        if not self._configuration.value.enabled:
            await self._withdraw()
            return _CHECK_S
        certificate = await self._store.agree()
        trusted = self._store.trusted_authorities(certificate)
        if await register(self._kube, self._configuration.value, self._address, trusted, claims=self._claims):
            return _SETTLE_S
        self._store.serve(certificate)
        return _CHECK_S

    async def _withdraw(self) -> None:
        """Delete the registration. An empty one, as the chart has it, has no effect and may stay."""
        with contextlib.suppress(NotFound):
            if (await self._kube.get(MUTATING_WEBHOOKS, WEBHOOKS)).get("webhooks"):
                await self._kube.delete(MUTATING_WEBHOOKS, WEBHOOKS)

    async def run(self, ready: Callable[[], bool]) -> None:
        """Register when this replica is ready, and keep the registration up to date until canceled."""
        failures = FailureLog(log, "Cannot register the webhook: %s", pauses_s=_RETRY_PAUSES_S)
        while True:
            if not ready():
                await self._clock.sleep(_POLL_S)
                continue
            self._due.clear()
            before = self._changes
            try:
                pause = await self.reconcile()
            except Outside as error:
                pause = failures.failed(error)
            else:
                failures.succeeded()
                self._settled = pause == _CHECK_S
            if not (self._settled and self._changes != before):
                await self._wait_until_due(pause)
            self._settled = False

    async def watch(self) -> None:
        """Have it checked as soon as the registration changes, until canceled."""
        fields = f"metadata.name={WEBHOOKS}"
        async for kind, _ in follow(self._kube, self._clock, MUTATING_WEBHOOKS, fields=fields):
            self._changes += kind != SYNCED
            if self._settled:
                self._due.set()

    async def _wait_until_due(self, pause_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await within(self._clock, pause_s, self._due.wait())
