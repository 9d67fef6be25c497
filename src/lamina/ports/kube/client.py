"""A real API server, through aiohttp.

lightkube reads the kubeconfig and brings TLS and every way to log in. Its own connection is left out, because httpx
costs several times the time of aiohttp per request, and so are its typed resources: a cluster's pods as dataclasses
cost several times the time and memory of dictionaries, and only a few of their fields are read.
"""

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
import yaml
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError
from yarl import URL

from lamina import __version__
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import BadInput, NoKubeconfig, Outside
from lamina.ports.clock import SystemClock
from lamina.ports.kube import answers
from lamina.ports.kube.errors import Gone, NoCluster, NotLoggedIn, Refused, Unreachable
from lamina.ports.kube.login import Login
from lamina.ports.kube.protocol import (
    NO_METADATA,
    BindingMetadata,
    Listing,
    Object,
    Patch,
    Watched,
    encoded_patch,
)
from lamina.ports.kube.resources import PODS, Resource
from lamina.ports.polling import FailureLog, retry

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""After how long parts of a cluster ask again for a server that does not answer when they start."""
_CHUNK = 1000
_WATCH_S = 240
"""How long the server may keep one watch."""
_SILENT_S = 75.0
"""After how long without a word a watch ends. API servers send a bookmark about every minute, so its connection is
likely dead: its machine lost power, or a proxy or firewall has forgotten it. Where there was nothing to say, the next
watch continues from the same version."""
_TIMEOUT_S, _CONNECT_S = 30.0, 5.0
_KEPT_OPEN_S = 60.0
"""How long an idle connection is kept for the next request."""
_OBJECT_S, _LIST_S = 60.0, 300.0
"""How long one answer may take as a whole. `_TIMEOUT_S` is about silence, which an endless answer never keeps."""
_PROXIED_S = 5.0
"""How long a pod or node may take that the server passes a request on to."""
_MAX_OBJECT, _MAX_LIST = 16 * 2**20, 512 * 2**20
"""Bytes of one answer. etcd holds no object of more than some MiB; a list may have to be read in one piece."""
_BUSY_TRIES = 4
_MAX_ADDRESS = 65_536
_SHOWN = 100
_NO_TOKEN = (json.JSONDecodeError, LookupError, TypeError)
_NO_LOGIN = (ConfigError, OSError, *_NO_TOKEN)
"""What lightkube raises at a request when a token's file is gone, or a login program fails or says something else."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PROBES = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 25_000}
"""The kernel gives a connection up whose other end has not answered for 25 s, whether data or probes; the last one is
in milliseconds. Systems other than Linux lack some of them."""


async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    again_s: float | None = None,
    lamina_namespace: str = DEFAULT_NAMESPACE,
) -> "KubeClient":
    """The server that a kubeconfig names, once it has answered.

    Without a path: $KUBECONFIG, else the pod's own account inside a cluster, else ~/.kube/config. Raises BadInput
    when that names no server, NotLoggedIn when it does not accept the login, and NoCluster when it does not answer.
    With `again_s` that one is asked again after so many seconds, as parts of a cluster do that have to be there when it
    comes back.
    """
    config = _load(kubeconfig, context)
    server = config.cluster.server
    try:
        kube = KubeClient(_session(config), server, Login(user_auth(config.user), server), lamina_namespace)
    except (ConfigError, AssertionError, OSError, ValueError) as error:
        raise BadInput(f"{_named(config.fname)} cannot be used: {answers.one_line(error)}") from error
    try:
        await _answered(kube, again_s)
    except NotLoggedIn as error:
        await kube.close()
        raise NotLoggedIn(
            f"the login of {_named(config.fname)} (context {config.context_name}) is missing or has expired; log in "
            f"again, as for kubectl: {error}"
        ) from error
    except Outside as error:
        await kube.close()
        refusal = NoCluster if isinstance(error, Unreachable) else BadInput
        raise refusal(f"{_named(config.fname)} does not lead to a Kubernetes API: {error}") from error
    return kube


def cluster_name(kubeconfig: Path | None, context: str = "") -> str:
    """The cluster that commands act on, for people: the server, and the kubeconfig's context. Raises BadInput."""
    config = _load(kubeconfig, context)
    return f"{config.cluster.server} (context {config.context_name})"


def context_namespace(kubeconfig: Path | None, context: str = "") -> str:
    """The namespace of a context of the kubeconfig, or of its current one, as kubectl uses it. Raises BadInput."""
    return _load(kubeconfig, context).namespace or "default"


async def _answered(kube: "KubeClient", again_s: float | None) -> None:
    """Raises Outside."""
    if again_s is None:
        await kube.version()
        return
    failures = FailureLog(log, "Waiting for the cluster: %s")
    await retry(kube.version, SystemClock(), every_s=again_s, failed=failures.failed, on=Unreachable)


def _load(path: Path | None, context: str) -> SingleConfig:
    from_env = os.environ.get("KUBECONFIG", "")
    if path is None and from_env:
        path = Path(from_env)
    inside = path is None and "KUBERNETES_SERVICE_HOST" in os.environ
    path = path or Path("~/.kube/config").expanduser()
    where = "the pod's service account" if inside else _named(path)
    if not inside and not path.exists():
        raise NoKubeconfig(f"{where} cannot be used: not found; set KUBECONFIG or --kubeconfig")
    try:
        config = KubeConfig.from_service_account() if inside else KubeConfig.from_file(path)
        if context and context not in config.contexts:
            raise BadInput(f"{where} has no context {context}; it has {', '.join(config.contexts) or 'none'}")
        chosen = config.get(context or None)
    except (ConfigError, OSError, yaml.YAMLError, ValueError) as error:
        raise BadInput(f"{where} cannot be used: {answers.one_line(error)}") from error
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{where} is not a kubeconfig with clusters, users and contexts that name each other") from error
    if chosen is None:
        raise BadInput(f"{where} names no current context")
    return chosen


def _named(path: Path | None) -> str:
    return f"kubeconfig {path}" if path else "the kubeconfig"


def _session(config: SingleConfig) -> aiohttp.ClientSession:
    """Connections to the server of a kubeconfig, by its certificates and, except on this machine, by the proxy that
    the environment names."""
    assert config.user, "Missing user"
    from_env = urlsplit(config.cluster.server).hostname not in _LOOPBACK
    tls = verify_cluster(config.cluster, config.user, config.abs_file, trust_env=from_env)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, keepalive_timeout=_KEPT_OPEN_S, socket_factory=_probed_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "application/json", "User-Agent": f"lamina/{__version__}"},
        trust_env=from_env,
    )


def _probed_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices when the other end is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBES.items():
        if (number := getattr(socket, option, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made


class KubeClient:
    """The `Kube` of a real server. Made by `connect`."""

    def __init__(
        self, session: aiohttp.ClientSession, server: str, login: Login, lamina_namespace: str = DEFAULT_NAMESPACE
    ) -> None:
        self._session = session
        self._login = login
        self.server = server
        self.lamina_namespace = lamina_namespace

    async def version(self) -> Object:
        """What the server says it is: major, minor, gitVersion."""
        return await self._ask("GET", "version")

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return await self._ask("GET", resource.path(namespace=namespace, name=name))

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        path = resource.path(namespace=namespace)
        chosen = _selectors(labels, fields)
        try:
            return await self._list(path, {**chosen, "limit": str(_CHUNK)})
        except Gone:
            return await self._list(path, chosen)

    async def _list(self, path: str, params: dict[str, str]) -> Listing:
        items: list[Object] = []
        while True:
            answer = await self._ask("GET", path, params=params, most=_MAX_LIST, limit_s=_LIST_S)
            page = answers.page_of(answer, f"GET {path}")
            items += page.items
            if not page.more:
                return Listing(items, page.version)
            params = {**params, "continue": page.more}

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        params = {
            **_selectors(labels, fields),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S),
        }
        path = resource.path(namespace=namespace)
        address = self._address("watching", path, params)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(_TIMEOUT_S):
                    response = await stack.enter_async_context(self._requested("GET", address, silent_s=_SILENT_S))
                if response.status != 200:
                    body = await _body(response, _MAX_OBJECT, f"watching {path}")
                    raise answers.error_of(response.status, body, f"watching {path}")
                with contextlib.suppress(aiohttp.SocketTimeoutError):
                    async for line in _lines(response):
                        if line:
                            yield answers.watched_in(line, f"watching {path}")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(error) from error

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        namespace = namespace or obj["metadata"].get("namespace", "")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await self._ask("POST", resource.path(namespace=namespace), body=body)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        meta = obj["metadata"]
        path = resource.path(namespace=meta.get("namespace", ""), name=meta["name"], subresource=subresource)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await self._ask("PUT", path, body=body)

    async def patch(
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object:
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return await self._ask("PATCH", path, body=body)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._ask("DELETE", resource.path(namespace=namespace, name=name), body=body)

    async def bind(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str,
        node: str,
        metadata: BindingMetadata = NO_METADATA,
        version: str = "",
    ) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {**_identity(pod, namespace, uid, version), **_written(metadata)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._ask("POST", PODS.path(namespace=namespace, name=pod, subresource="binding"), body=body)

    async def evict(self, pod: str, *, namespace: str, uid: str, grace_s: int | None = None) -> None:
        grace = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}, **grace},
        }
        await self._ask("POST", PODS.path(namespace=namespace, name=pod, subresource="eviction"), body=body)

    async def proxied(self, resource: Resource, name: str, path: str, *, namespace: str = "") -> bytes:
        place = resource.path(namespace=namespace, name=name, subresource="proxy")
        return await self._body_of("GET", f"{place}/{path}", limit_s=_PROXIED_S)

    async def close(self) -> None:
        await self._session.close()

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Patch | None = None,
        most: int | None = None,
        limit_s: float | None = None,
    ) -> Object:
        """The object that is answered, see `_body_of`."""
        answer = await self._body_of(method, path, params=params, body=body, most=most, limit_s=limit_s)
        return answers.object_of(answer, f"{method} {path}")

    async def _body_of(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Patch | None = None,
        most: int | None = None,
        limit_s: float | None = None,
    ) -> bytes:
        """`most` are the bytes of an answer, `limit_s` its seconds; without them those of one object."""
        most, limit_s = most or _MAX_OBJECT, limit_s or _OBJECT_S
        address, headers, content = self._address(method, path, params), {}, None
        if body is not None:
            headers["Content-Type"], content = _encoded(method, body)
        for tries in range(1, _BUSY_TRIES + 1):
            try:
                async with (
                    asyncio.timeout(limit_s) as limit,
                    self._requested(method, address, headers=headers, content=content) as response,
                ):
                    answer = await _body(response, most, f"{method} {path}")
            except aiohttp.ClientError as error:
                raise self._unreachable(error) from error
            except TimeoutError as error:
                if not limit.expired():
                    raise self._unreachable(error) from error
                raise Unreachable(
                    f"the Kubernetes server {self.server} does not answer: {method} {path} took more than {limit_s:g} s"
                ) from error
            if response.status != 429 or tries == _BUSY_TRIES:
                break
            await asyncio.sleep(answers.retry_after(response.headers.get("Retry-After")))
        if response.status >= 300:
            raise answers.error_of(response.status, answer, f"{method} {path}")
        return answer

    @contextlib.asynccontextmanager
    async def _requested(
        self,
        method: str,
        address: URL,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        silent_s: float = _TIMEOUT_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request, whose body is not read. A login that the server refuses is renewed once.

        Raises aiohttp.ClientError and TimeoutError where none comes, and Refused where lightkube cannot log in.
        """
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=silent_s)
        renewed = False
        while True:
            sent = {**(headers or {}), **await self._logged_in(renew=False)}
            async with self._session.request(
                method, address, data=content, headers=sent, timeout=timeout, allow_redirects=False
            ) as response:
                if response.status != 401 or renewed or not await self._logged_in(renew=True):
                    yield response
                    return
            renewed = True

    async def _logged_in(self, *, renew: bool) -> dict[str, str]:
        """The header that logs in; with `renew` another one than before, or nothing. Raises Refused."""
        try:
            if renew and not await self._login.renew():
                return {}
            return await self._login.headers()
        except _NO_LOGIN as error:
            raise self._not_logged_in(error) from error

    def _address(self, doing: str, path: str, params: Mapping[str, str] | None) -> URL:
        """Raises Refused. A name may be longer than an address can be."""
        query = f"?{urlencode(params)}" if params else ""
        address = f"{self.server.rstrip('/')}/{path}{query}"
        if len(address) > _MAX_ADDRESS:
            raise Refused(f"the address of {doing} {path[:_SHOWN]}... cannot be used: URL too long")
        return URL(address, encoded=True)

    def _not_logged_in(self, error: Exception) -> NotLoggedIn:
        reason = "a login program returned no token" if isinstance(error, _NO_TOKEN) else answers.one_line(error)
        return NotLoggedIn(f"cannot log in to the Kubernetes server {self.server}: {reason}")

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"the Kubernetes server {self.server} does not answer: {answers.one_line(error)}")


def _encoded(method: str, body: Patch) -> tuple[str, bytes]:
    return encoded_patch(body) if method == "PATCH" else ("application/json", msgspec.json.encode(body))


def _identity(name: str, namespace: str, uid: str, version: str) -> dict[str, str]:
    fields = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version}
    return {field: value for field, value in fields.items() if value}


def _written(metadata: BindingMetadata) -> Object:
    fields = {"annotations": dict(metadata.annotations), "labels": dict(metadata.labels)}
    return {field: values for field, values in fields.items() if values}


def _selectors(labels: str, fields: str) -> dict[str, str]:
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in chosen.items() if value}


async def _body(response: aiohttp.ClientResponse, most: int, doing: str) -> bytes:
    """The whole body. Raises Outside where it is larger than `most` bytes."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            raise Outside(f"Kubernetes answered {doing} with more than {most} bytes")
    return bytes(body)


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """Lines as a server ends them, by a newline alone, however long."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    yield rest
