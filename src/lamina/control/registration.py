"""Keep the webhook registered: with the certificate in force, for the resource names in force.

Both are looked at every few minutes, so that a registration that somebody removed or changed comes back, and a
certificate is renewed in time. A new certificate is served once the API server has been told of its authority and has
had time to take that in; until then the older one is, whose authority it trusts as well.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from lamina.control.certificate_store import CertificateStore
from lamina.control.configuration import Configuration
from lamina.control.settings import ControlSettings
from lamina.control.webhook_configuration import NAME as WEBHOOKS
from lamina.control.webhook_configuration import NAMESPACE, SERVICE, register, service_address, url_address
from lamina.errors import Outside
from lamina.ports.kube import MUTATING_WEBHOOKS, Kube, NotFound

log = logging.getLogger(__name__)

_EVERY_S = 300.0
_SETTLE_S = 5.0
"""By then all API servers know of another registration."""
_LOOK_S = 0.1
"""How often a replica that is not ready looks whether it is."""
_AFTER_FAILURE_S = 2.0
"""Doubled with each failure in a row."""


def own_host(settings: ControlSettings) -> str:
    """The host by which the API server reaches admission directly, or nothing where it goes through the Service."""
    return settings.admission_host or (settings.admission.host if settings.admission.is_loopback else "")


def served_names(settings: ControlSettings) -> list[str]:
    """The names that the serving certificate has to carry."""
    service = f"{SERVICE}.{NAMESPACE}.svc"
    return [service, f"{service}.cluster.local", *filter(None, [own_host(settings)])]


def client_config(settings: ControlSettings, port: int) -> Mapping[str, Any]:
    """How the API server is told to reach admission, which listens on `port`."""
    host = own_host(settings)
    return url_address(host, port) if host else service_address()


class Registration:
    """Writes the registration whenever it is time, or the configuration has changed."""

    def __init__(
        self, kube: Kube, configuration: Configuration, store: CertificateStore, address: Mapping[str, Any]
    ) -> None:
        self._kube = kube
        self._configuration = configuration
        self._store = store
        self._address = address
        self._due = asyncio.Event()
        configuration.listeners.append(self._due.set)

    async def put_right(self) -> float:
        """Look once, and write what is not as it should be. Returns after how many seconds to look again."""
        if not self._configuration.value.enabled:
            with contextlib.suppress(NotFound):
                await self._kube.delete(MUTATING_WEBHOOKS, WEBHOOKS)
            return _EVERY_S
        certificate = await self._store.agree()
        trusted = self._store.trusted(certificate)
        if await register(self._kube, self._configuration.value, self._address, trusted):
            return _SETTLE_S
        self._store.serve(certificate)
        return _EVERY_S

    async def run(self, ready: Callable[[], bool]) -> None:
        """Register when this replica is ready, and keep it so until cancelled."""
        failures = 0
        while True:
            if not ready():
                await asyncio.sleep(_LOOK_S)
                continue
            self._due.clear()
            try:
                pause = await self.put_right()
            except Outside as error:
                log.warning("The webhook could not be registered: %s", error)
                pause = min(_AFTER_FAILURE_S * 2**failures, _EVERY_S)
                failures += 1
            else:
                failures = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._due.wait()
