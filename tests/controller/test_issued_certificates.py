"""The extender's own certificates: generations, when each is trusted and used, and the Secrets that have them."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import msgspec
import pytest

from lamina.controller.extender.client_certificates import ExtenderTls, IssuedCertificates
from lamina.controller.extender.own_certificates import (
    FOLLOWED_BEFORE,
    USED_UNTIL,
    VALID,
    Issued,
    IssuedStore,
    create,
    renewed,
)
from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.core.component_names import DEFAULT_NAMESPACE, EXTENDER_CLIENT_SECRET, EXTENDER_SECRET, extender_name
from lamina.ports.certificates import use_certificate
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.kube import SECRETS, Conflict, Kube, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.secret_objects import content_of
from lamina.ports.listener import Address
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MARGIN = timedelta(minutes=5)
NAMESPACE = DEFAULT_NAMESPACE
NAME = extender_name(NAMESPACE)


@pytest.fixture(scope="module")
def first() -> Issued:
    return renewed([], NOW, NAME)


def test_a_generation_stays_until_it_is_followed(first: Issued) -> None:
    assert first.following is None
    assert renewed([first.current], NOW + VALID - FOLLOWED_BEFORE - MARGIN, NAME) == first


def test_the_next_generation_is_trusted_long_before_it_is_used(first: Issued) -> None:
    created = NOW + VALID - FOLLOWED_BEFORE + MARGIN
    second = renewed([first.current], created, NAME)
    assert second.current == first.current and second.following is not None
    assert second.authorities == first.current.authority + second.following.authority
    present = [second.current, second.following]
    assert renewed(present, NOW + VALID - USED_UNTIL - MARGIN, NAME) == second
    third = renewed(present, NOW + VALID - USED_UNTIL + MARGIN, NAME)
    assert third.current == second.following and third.following is None
    assert timedelta(days=14 * 31) < FOLLOWED_BEFORE - USED_UNTIL, "longer than a version of Kubernetes is supported"


def test_the_next_generation_is_used_at_once_where_the_one_before_has_ended(first: Issued) -> None:
    following = create(NOW + VALID - timedelta(days=100), NAME)
    assert renewed([first.current, following], NOW + VALID + MARGIN, NAME).current == following


def test_a_generation_that_is_damaged_or_has_ended_is_replaced(first: Issued) -> None:
    whole, other = first.current, create(NOW, NAME)
    for damaged in (
        whole._replace(authority=b""),
        whole._replace(server=other.server),
        whole._replace(client=whole.client._replace(key=b"nonsense")),
        whole._replace(server=whole.client),
    ):
        assert renewed([damaged], NOW, NAME).current not in (damaged, whole)
    assert renewed([whole], NOW + VALID + MARGIN, NAME).current != whole


@pytest.mark.parametrize("behind", [timedelta(minutes=5), timedelta(hours=2), timedelta(days=1), timedelta(days=7)])
def test_a_replica_whose_clock_is_wrong_replaces_nothing(first: Issued, behind: timedelta) -> None:
    """It may be right, and the other replica's clock wrong: the running scheduler trusts only what it has read."""
    assert renewed([first.current], NOW - behind, NAME) == first
    assert renewed([create(NOW - behind, NAME)], NOW, NAME).following is None


def test_a_generation_of_a_clock_that_was_wrong_by_years_is_replaced(first: Issued) -> None:
    assert renewed([first.current], NOW - timedelta(days=9), NAME).current != first.current


async def secret(kube: Kube, name: str) -> Object:
    return await kube.get(SECRETS, name, namespace=NAMESPACE)


async def test_replicas_agree_and_the_scheduler_gets_what_fits() -> None:
    kube, clock = FakeKube(), FakeClock()
    one, two = await asyncio.gather(IssuedStore(kube, clock).agree(), IssuedStore(kube, clock).agree())
    assert one == two == await IssuedStore(kube, clock).agree()
    client = await secret(kube, EXTENDER_CLIENT_SECRET)
    assert content_of(client, "ca.crt") == one.authorities
    assert content_of(client, "tls.crt") == one.current.client.certificate
    assert sorted(client["data"]) == ["ca.crt", "tls.crt", "tls.key"], "the scheduler has no key of the controller"


async def test_what_is_not_due_is_not_written() -> None:
    kube, clock = FakeKube(), FakeClock()
    await IssuedStore(kube, clock).agree()
    before = [await secret(kube, name) for name in (EXTENDER_SECRET, EXTENDER_CLIENT_SECRET)]
    await clock.advance(timedelta(days=30).total_seconds())
    await IssuedStore(kube, clock).agree()
    assert [await secret(kube, name) for name in (EXTENDER_SECRET, EXTENDER_CLIENT_SECRET)] == before


async def test_a_secret_of_the_scheduler_that_was_changed_or_is_gone_is_restored() -> None:
    kube, clock = FakeKube(), FakeClock()
    store = IssuedStore(kube, clock)
    issued = await store.agree()
    present = await secret(kube, EXTENDER_CLIENT_SECRET)
    await kube.replace(SECRETS, present | {"data": present["data"] | {"ca.crt": "!"}})
    assert await store.agree() == issued
    assert (await secret(kube, EXTENDER_CLIENT_SECRET))["data"] == present["data"]
    await kube.delete(SECRETS, EXTENDER_CLIENT_SECRET, namespace=NAMESPACE)
    assert await store.agree() == issued
    assert (await secret(kube, EXTENDER_CLIENT_SECRET))["data"] == present["data"]


async def test_a_replica_that_was_slower_takes_what_the_other_wrote() -> None:
    kube, clock = FakeKube(), FakeClock()
    failed: list[str] = []

    def once(resource: object, name: str) -> Exception | None:
        failed.append(name)
        return Conflict("another was faster") if len(failed) == 1 else None

    kube.failing["create"] = once
    assert (await IssuedStore(kube, clock).agree()).following is None
    assert len(failed) > 1


async def client_context(kube: Kube) -> ssl.SSLContext:
    """As kube-scheduler loads it at its start."""
    mounted = await secret(kube, EXTENDER_CLIENT_SECRET)
    context = ssl.create_default_context(cadata=content_of(mounted, "ca.crt").decode())
    use_certificate(context, content_of(mounted, "tls.crt"), content_of(mounted, "tls.key"))
    return context


async def answered(tls: ExtenderTls, client: ssl.SSLContext) -> bool:
    """Whether the extender and its client accept each other."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ok")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=NAME)
            found = await reader.read()
            writer.close()
        except (ssl.SSLError, OSError):
            return False
    return found == b"ok"


async def test_a_scheduler_that_started_in_between_never_notices_a_renewal() -> None:
    # Handshakes look at the machine's clock, so the first generation is one that ends in eight days.
    end = datetime.now(UTC) + USED_UNTIL + timedelta(days=1)
    kube, clock = FakeKube(), FakeClock((end - VALID).timestamp())
    tls = ExtenderTls(IssuedCertificates(IssuedStore(kube, clock)))
    await tls.load()
    at_first = await client_context(kube)
    await clock.advance((VALID - timedelta(days=100)).total_seconds())
    await tls.load()
    in_between = await client_context(kube)
    assert await answered(tls, at_first) and await answered(tls, in_between)
    await clock.advance((timedelta(days=100) - USED_UNTIL + timedelta(minutes=5)).total_seconds())
    await tls.load()
    assert await answered(tls, await client_context(kube)), "the new client certificate"
    assert await answered(tls, in_between), "the one before, and an authority that it read at its start"
    assert not await answered(tls, at_first), "the authority is unknown to who never read it"


async def healthz(url: str, context: ssl.SSLContext) -> int:
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"{url}/healthz", server_hostname=NAME) as response,
    ):
        return response.status


async def test_the_controller_serves_its_own_certificates_and_no_http_unless_told(tmp_path: Path) -> None:
    kube, stop, addresses = FakeKube(), asyncio.Event(), tmp_path / "addresses.json"
    free = Address("127.0.0.1", 0)
    settings = ControllerSettings(extender=free, admission=free, addresses_file=addresses)
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    await until(addresses.exists, task=task)
    urls = msgspec.json.decode(addresses.read_bytes())
    assert sorted(urls) == ["extender"] and urls["extender"].startswith("https://")
    without = ssl.create_default_context(
        cadata=content_of(await secret(kube, EXTENDER_CLIENT_SECRET), "ca.crt").decode()
    )
    assert await healthz(urls["extender"], await client_context(kube)) == 200
    with pytest.raises(aiohttp.ClientError):
        await healthz(urls["extender"], without)
    stop.set()
    await task
