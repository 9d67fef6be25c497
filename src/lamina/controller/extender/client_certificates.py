"""TLS for the extender, which then answers only clients with a certificate of an authority that it trusts.

The certificates come from Lamina's own Secrets, or from the files of a mounted Secret, which kubelet updates in place.
They are read again and again, so a renewed certificate is served without a restart.
"""

import logging
import ssl
from pathlib import Path
from typing import NamedTuple, Protocol

from lamina.controller.extender.own_certificates import IssuedStore
from lamina.core.component_names import AUTHORITY_FILE, CERTIFICATE_FILE, EXTENDER_SECRET, KEY_FILE
from lamina.errors import BadInput, LaminaError
from lamina.ports.certificates import CertifiedKey, use_certificate
from lamina.ports.clock import Clock
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_REREAD_S = 60.0


class Material(NamedTuple):
    """What the extender serves with. `where` says where it comes from."""

    where: str
    pair: CertifiedKey
    authorities: bytes


class Source(Protocol):
    """Where the certificates come from."""

    async def read(self) -> Material:
        """What to use now. Raises BadInput and Outside."""


class MountedCertificates:
    """A directory with the extender's certificate and key, and the authority of its clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def read(self) -> Material:
        try:
            certificate, key, authority = (
                (self._directory / name).read_bytes() for name in (CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE)
            )
        except OSError as error:
            raise _unusable(str(self._directory), error) from error
        return Material(str(self._directory), CertifiedKey(certificate, key), authority)


class IssuedCertificates:
    """The certificates that Lamina creates."""

    def __init__(self, store: IssuedStore) -> None:
        self._store = store

    async def read(self) -> Material:
        issued = await self._store.agree()
        return Material(
            f"the Secret {self._store.namespace}/{EXTENDER_SECRET}", issued.current.server, issued.authorities
        )


class ExtenderTls:
    """The TLS context of the extender."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._loaded: Material | None = None
        self.context = _new_context()

    @property
    def served(self) -> bytes:
        """The certificate in PEM; empty before the first."""
        return self._loaded.pair.certificate if self._loaded else b""

    async def load(self) -> None:
        """Use the certificates from the next handshake on. Raises BadInput where they do not fit, and Outside where
        they cannot be read; nothing changes then.

        An authority stays trusted until the program ends.
        """
        material = await self._source.read()
        if material != self._loaded:
            _use(material, _new_context())
            _use(material, self.context)
            self._loaded = material

    async def follow(self, clock: Clock) -> None:
        """Load the certificates again and again, until canceled."""
        failures = FailureLog(log, "The extender's certificate is unchanged: %s")
        await poll(self.load, clock, every_s=_REREAD_S, delay_s=_REREAD_S, failures=failures, on=LaminaError)


def _use(material: Material, context: ssl.SSLContext) -> None:
    try:
        use_certificate(context, *material.pair)
        context.load_verify_locations(cadata=material.authorities.decode("ascii"))
    except (OSError, ValueError) as error:  # the ssl module's errors are a kind of OSError
        raise _unusable(material.where, error) from error


def _unusable(where: str, error: Exception) -> BadInput:
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return BadInput(
        f"{where} must have a certificate in {CERTIFICATE_FILE}, its key in {KEY_FILE} and the authority of the "
        f"clients in {AUTHORITY_FILE}, all in PEM: {reason}"
    )


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    return context
