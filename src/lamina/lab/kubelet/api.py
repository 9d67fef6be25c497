"""The kubelet's way to the API server: a kubeconfig, plain calls, and watches."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

from lamina.errors import BadInput

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused, or with status 0 could not be reached."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the API server is and who asks, as a kubeconfig's current context says."""

    server: str
    token: str
    tls: ssl.SSLContext | bool

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Cluster:
        """Raises BadInput for a file that names no cluster."""
        try:
            document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
            context = _named(document["contexts"], document["current-context"])["context"]
            cluster = _named(document["clusters"], context["cluster"])["cluster"]
            user = _named(document["users"], context["user"])["user"]
            server = cluster["server"].rstrip("/")
        except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise BadInput(f"the kubeconfig {path} names no cluster: {error}") from error
        return cls(server, _token(user), _tls(cluster, user))


class Api:
    """Calls to the API server; use as an asynchronous context."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        headers = {"Authorization": f"Bearer {cluster.token}"} if cluster.token else {}
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=cluster.tls, limit=32),
            timeout=aiohttp.ClientTimeout(total=30, sock_connect=5),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Object:
        return await self._call("GET", path, params=params)

    async def post(self, path: str, body: Object) -> Object:
        return await self._call("POST", path, body=body)

    async def merge(self, path: str, body: Object) -> Object:
        return await self._call("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, path: str, body: Object) -> Object:
        return await self._call("DELETE", path, body=body)

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[Object]:
        """Events as they come; ends when the server ends it. Raises ApiError."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        url = self.cluster.server + path
        try:
            async with self._session.get(url, params={**params, "watch": "true"}, timeout=timeout) as answer:
                await _check(answer)
                rest = b""
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if line.strip():
                            yield json.loads(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, str(error) or type(error).__name__) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type}
        try:
            async with self._session.request(
                method, self.cluster.server + path, params=params, data=data, headers=headers
            ) as answer:
                await _check(answer)
                found: Object = json.loads(await answer.read())
                return found
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, str(error) or type(error).__name__) from error


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    text = await answer.text()
    try:
        status = json.loads(text)
        raise ApiError(answer.status, status.get("message", text), status.get("reason", ""))
    except (ValueError, AttributeError):
        raise ApiError(answer.status, text) from None


def _named(entries: list[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _token(user: Object) -> str:
    if path := user.get("tokenFile"):
        return Path(path).read_text().strip()
    return str(user.get("token") or "")


def _tls(cluster: Object, user: Object) -> ssl.SSLContext | bool:
    if not cluster["server"].startswith("https:"):
        return True
    context = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.get("certificate-authority-data"):
        context.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    elif cluster.get("certificate-authority"):
        context.load_verify_locations(cafile=cluster["certificate-authority"])
    if user.get("client-certificate-data"):
        # The ssl module reads certificates and keys from files only.
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
            file.write(base64.b64decode(user["client-key-data"]))
            file.flush()
            context.load_cert_chain(file.name)
    elif user.get("client-certificate"):
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    return context
