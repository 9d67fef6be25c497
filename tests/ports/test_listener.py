"""Where services can be reached."""

import errno
import socket
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from lamina.errors import BadInput
from lamina.ports.listener import Address, listening

EVERYWHERE = Address("", 0)


async def hello(request: web.Request) -> web.Response:
    return web.Response(text="hello")


def app() -> web.Application:
    made = web.Application()
    made.router.add_get("/", hello)
    return made


async def asked(host: str, port: int) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}/") as response:
        return await response.text()


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


async def test_all_interfaces_are_those_of_ipv6_too() -> None:
    """In a cluster with IPv6 alone a pod has no other address."""
    async with listening("a service", app(), EVERYWHERE) as at:
        assert str(at) == f":{at.port}"
        assert await asked("127.0.0.1", at.port) == "hello"
        if not has_ipv6():
            pytest.skip("this machine has no IPv6")
        assert await asked("[::1]", at.port) == "hello"


@pytest.mark.parametrize("switched_off", [True, False])
async def test_without_ipv6_they_are_those_of_ipv4(monkeypatch: pytest.MonkeyPatch, switched_off: bool) -> None:
    create = socket.create_server

    def without_ipv6(address: Any, *, family: int = socket.AF_INET, **more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "no")
        return create(address, family=family, **more)

    if switched_off:
        monkeypatch.setattr(socket, "create_server", without_ipv6)
    else:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with listening("a service", app(), EVERYWHERE) as at:
        assert await asked("127.0.0.1", at.port) == "hello"


async def test_a_port_in_use_is_one_sentence() -> None:
    async with listening("a service", app(), EVERYWHERE) as at:
        with pytest.raises(BadInput, match=f"another cannot listen on :{at.port}: Address already in use"):
            async with listening("another", app(), at):
                pass
