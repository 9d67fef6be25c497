"""The whole API server."""

import errno
import secrets
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from lamina.errors import BadInput
from lamina_lab.api.access import certificates, kubeconfig
from lamina_lab.api.access.escalation import EscalationCheck
from lamina_lab.api.access.rbac import Roles
from lamina_lab.api.http import proxies
from lamina_lab.api.http.app import application
from lamina_lab.api.http.kubelets import Kubelets
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.api.storage.verbs import Api
from lamina_lab.api.webhooks.admission import Webhooks

HOST = "127.0.0.1"


class ApiServer(Struct):
    """A running API server. Code in the same process may use `api`; all others use the kubeconfig."""

    api: Api
    url: str
    port: int
    token: str
    authority: certificates.KeyPair
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
    authority: certificates.KeyPair | None = None,
    clock: Callable[[], float] = time.time,
    agents: proxies.Agents = proxies.none,
) -> ApiServer:
    """Start on 127.0.0.1; port 0 picks a free one. Raises BadInput if the port is taken or not allowed."""
    token = token or secrets.token_urlsafe(32)
    authority = authority or certificates.authority()
    catalog, store = Catalog(), Store(clock)
    webhooks = Webhooks(store, catalog)
    api = Api(store, catalog, EscalationCheck(Roles(store, catalog), webhooks))
    runner = web.AppRunner(
        application(api, kubelets, token, agents), handler_cancellation=True, shutdown_timeout=1.0, access_log=None
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port, ssl_context=_tls(authority)).start()
    except (OSError, OverflowError) as error:
        await runner.cleanup()
        raise BadInput(f"the API server cannot listen on {HOST}:{port}: {_why(error)}; choose another port") from error
    bound = int(runner.addresses[0][1])
    url = f"https://{HOST}:{bound}"
    return ApiServer(api, url, bound, token, authority, runner, webhooks)


def _why(error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return "a port is a number from 0 to 65535"
    reasons = {errno.EADDRINUSE: "the port is in use", errno.EACCES: "the port needs privileges"}
    return reasons.get(error.errno or 0, error.strerror or str(error))


def _tls(authority: certificates.KeyPair) -> ssl.SSLContext:
    """TLS with a fresh certificate. The ssl module reads keys from files only; the file is removed right after."""
    pair = certificates.server(authority)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(prefix="lamina-tls-") as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
