"""TLS for the extender, which then answers only clients with a certificate of an authority that the operator chooses.

The files are those of a mounted Secret, which kubelet updates in place. They are read again every minute, so a renewed
certificate is served without a restart.
"""

import logging
import ssl
from pathlib import Path

from lamina.errors import BadInput
from lamina.ports.clock import Clock
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

CERTIFICATE, KEY, AUTHORITY = "tls.crt", "tls.key", "ca.crt"
"""The names of files in a directory, as Secrets of the type kubernetes.io/tls have them."""
_REREAD_S = 60.0


class ExtenderTls:
    """The TLS context of the extender. `directory` has its certificate and key, and the authority of its clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.context = _new_context()

    def load(self) -> None:
        """Use the files from the next handshake on. Raises BadInput where they do not fit, and changes nothing then.

        An authority stays trusted until the program ends.
        """
        self._load_into(_new_context())
        self._load_into(self.context)

    async def follow(self, clock: Clock) -> None:
        """Load the files again and again, until canceled."""

        async def update() -> None:
            self.load()

        failures = FailureLog(log, "The extender's certificate is unchanged: %s")
        await poll(update, clock, every_s=_REREAD_S, delay_s=_REREAD_S, failures=failures, on=BadInput)

    def _load_into(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._directory / CERTIFICATE, self._directory / KEY)
            context.load_verify_locations(self._directory / AUTHORITY)
        except OSError as error:  # of which the ssl module's errors are a kind
            raise BadInput(
                f"{self._directory} must have a certificate in {CERTIFICATE}, its key in {KEY} and the authority of "
                f"the clients in {AUTHORITY}, all in PEM: {error.strerror or error}"
            ) from error


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    return context
