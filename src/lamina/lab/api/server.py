"""The API server as a whole: one call starts it, one call ends it."""

from __future__ import annotations

import errno
import secrets
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from lamina.errors import BadInput
from lamina.lab.api import certificates, kubeconfig
from lamina.lab.api.admission import Webhooks
from lamina.lab.api.app import application
from lamina.lab.api.kubelets import Kubelets
from lamina.lab.api.resources import Catalogue
from lamina.lab.api.store import Store
from lamina.lab.api.verbs import Api

HOST = "127.0.0.1"


@dataclass(slots=True)
class Server:
    """A running API server. What runs in the same process may use `api` itself; everybody else the kubeconfig."""

    api: Api
    url: str
    port: int
    token: str
    authority: certificates.Pair
    _runner: web.AppRunner
    _webhooks: Webhooks

    def kubeconfig(self, name: str = "lamina-lab") -> str:
        return kubeconfig.render(name, self.url, self.authority.certificate, self.token)

    def write_kubeconfig(self, path: Path, name: str = "lamina-lab") -> None:
        kubeconfig.write(path, self.kubeconfig(name))

    async def close(self) -> None:
        """End all watches and connections."""
        await self._runner.cleanup()
        await self._webhooks.close()


async def serve(
    kubelets: Kubelets,
    port: int = 0,
    token: str | None = None,
    authority: certificates.Pair | None = None,
    clock: Callable[[], float] = time.time,
) -> Server:
    """Start on 127.0.0.1; port 0 takes a free one. Raises BadInput for a port that is taken or not allowed."""
    token = token or secrets.token_urlsafe(32)
    authority = authority or certificates.authority()
    catalogue, store = Catalogue(), Store(clock)
    webhooks = Webhooks(store, catalogue)
    api = Api(store, catalogue, webhooks)
    runner = web.AppRunner(
        application(api, kubelets, token), handler_cancellation=True, shutdown_timeout=1.0, access_log=None
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port, ssl_context=_tls(authority)).start()
    except (OSError, OverflowError) as error:
        await runner.cleanup()
        raise BadInput(f"the API server cannot listen on {HOST}:{port}: {_why(error)}; choose another port") from error
    bound = int(runner.addresses[0][1])
    url = f"https://{HOST}:{bound}"
    return Server(api, url, bound, token, authority, runner, webhooks)


def _why(error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return "a port is a number from 0 to 65535"
    reasons = {errno.EADDRINUSE: "the port is in use", errno.EACCES: "the port needs privileges"}
    return reasons.get(error.errno or 0, error.strerror or str(error))


def _tls(authority: certificates.Pair) -> ssl.SSLContext:
    """TLS with a fresh certificate; the ssl module only takes its key from a file, which is gone right after."""
    pair = certificates.server(authority)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(prefix="lamina-tls-") as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
