"""Where a service listens, and listening there."""

import contextlib
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple

from aiohttp import web

from lamina.errors import BadInput

_BACKLOG = 1024
"""Connections that may wait to be accepted."""


class Address(NamedTuple):
    """Where a service listens; an empty host is all interfaces, by IPv6 and IPv4. Port 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, where: str) -> Address:
    """An address such as `127.0.0.1:8080`, `[::1]:8080` or `:8443` (all interfaces). Raises BadInput."""
    host, colon, port = text.rpartition(":")
    if (
        not colon
        or not port.isascii()
        or not port.isdigit()
        or int(port) > 65535
        or (":" in host.strip("[]")) != (host.startswith("[") and host.endswith("]"))
    ):
        raise BadInput(f"{where} must be HOST:PORT, such as 127.0.0.1:8080, got {text!r}")
    return Address(host.strip("[]"), int(port))


@contextlib.asynccontextmanager
async def listening(
    what: str, app: web.Application, address: Address, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """Serve `app`; yields the address with the assigned port. Raises BadInput if the address cannot be used."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        try:
            await _site(runner, address, tls).start()
        except OSError as error:
            raise _unusable(what, address, error) from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def listening_if_set(
    what: str, app: web.Application, address: Address | None, tls: ssl.SSLContext | None = None
) -> contextlib.AbstractAsyncContextManager[Address | None]:
    """Serve `app` if there is an address for it. Raises BadInput."""
    return contextlib.nullcontext() if address is None else listening(what, app, address, tls)


def bind(what: str, address: Address) -> socket.socket:
    """A socket that listens there, for a process that is to serve it. Raises BadInput if the address cannot be used."""
    try:
        if not address.host:
            return _on_all_interfaces(address.port)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _unusable(what, address, error) from error


def _unusable(what: str, address: Address, error: OSError) -> BadInput:
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror
    return BadInput(f"{what} cannot listen on {address}: {reason}; choose another address")


def _site(runner: web.AppRunner, address: Address, tls: ssl.SSLContext | None) -> web.BaseSite:
    if address.host:
        return web.TCPSite(runner, address.host, address.port, ssl_context=tls)
    return web.SockSite(runner, _on_all_interfaces(address.port), ssl_context=tls)


def _on_all_interfaces(port: int) -> socket.socket:
    """One socket, by IPv6 and IPv4 where the machine has both: a pod may have either address."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # as where IPv6 is there, and switched off
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)
