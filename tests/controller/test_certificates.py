"""Certificates: made, trusted, renewed, agreed upon by replicas, taken into service without a restart."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamina.admission import certificates
from lamina.admission.certificate_store import CertificateStore
from lamina.admission.certificates import RENEW_BEFORE, VALID, Certificate
from lamina.admission.registration import WebhookRegistration
from lamina.admission.webhook_configuration import url_address
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT
from lamina.errors import Outside
from lamina.ports.certificates import server_context, use_certificate
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.kube import MUTATING_WEBHOOKS, NAMESPACES, SECRETS, NotFound, Object, Refused, Resource
from lamina.ports.kube.fake import FakeKube

NAMES = ["127.0.0.1", "lamina-admission.lamina-system.svc"]


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def made() -> Certificate:
    return certificates.create(NAMES, now())


def test_it_serves_its_names_until_the_time_to_renew(made: Certificate) -> None:
    assert certificates.is_usable(made, NAMES, now())
    assert not certificates.is_usable(made, [*NAMES, "10.0.0.1"], now())
    due = now() + VALID - RENEW_BEFORE
    assert certificates.is_usable(made, NAMES, due - timedelta(minutes=5))
    assert not certificates.is_usable(made, NAMES, due + timedelta(minutes=5))
    assert certificates.is_usable(made, NAMES, now() - timedelta(days=6)), "either clock may be wrong"
    assert not certificates.is_usable(made, NAMES, now() - timedelta(days=9))


def test_a_damaged_one_does_not_serve(made: Certificate) -> None:
    other = certificates.create(NAMES, now())
    for broken in (
        made._replace(key=other.key),
        made._replace(authorities=other.authorities),
        made._replace(certificate=b""),
        made._replace(key=b"nonsense"),
        Certificate(b"", b"", b""),
    ):
        assert not certificates.is_usable(broken, NAMES, now())


def test_a_renewal_trusts_the_authority_before_it_and_no_older_one(made: Certificate) -> None:
    second = certificates.create(NAMES, now(), previous=made)
    third = certificates.create(NAMES, now(), previous=second)
    assert second.authorities.count(b"BEGIN") == third.authorities.count(b"BEGIN") == 2
    assert made.authorities in second.authorities and made.authorities not in third.authorities
    assert certificates.create(NAMES, now(), previous=Certificate(b"edited", b"", b"")).authorities.count(b"BEGIN") == 1


async def handshake(store: CertificateStore, trusted: bytes) -> None:
    """One connection to a server with what `store` says. Raises where the client does not trust it."""
    context, served = server_context(), store.served
    assert served is not None
    use_certificate(context, served.certificate, served.key)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        client = ssl.create_default_context(cadata=trusted.decode())
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        writer.close()


async def test_replicas_serve_the_same_certificate_and_clients_trust_it() -> None:
    kube = FakeKube()
    stores = [CertificateStore(kube, SystemClock(), NAMES) for _ in range(3)]
    found = await asyncio.gather(*(store.refresh() for store in stores))
    assert len(set(found)) == 1
    await handshake(stores[2], found[0].authorities)


async def test_a_renewed_certificate_is_taken_into_service_without_restart() -> None:
    kube, clock = FakeKube(), FakeClock(now().timestamp())
    one, two = (CertificateStore(kube, clock, NAMES) for _ in range(2))
    first = await one.refresh()
    assert await one.refresh() == await two.refresh() == first
    await clock.advance(1)
    stored = await kube.get(SECRETS, "lamina-admission", namespace="lamina-system")
    await kube.replace(SECRETS, stored | {"data": stored["data"] | {"tls.crt": "!"}})
    second = await one.refresh()
    assert second != first and await two.refresh() == second
    for store in (one, two):
        await handshake(store, second.authorities)
        with pytest.raises(ssl.SSLError):
            await handshake(store, first.authorities)


async def trusted(kube: FakeKube) -> bytes:
    """What the API server trusts."""
    webhook, *_ = (await kube.get(MUTATING_WEBHOOKS, "lamina.dev"))["webhooks"]
    return base64.b64decode(webhook["clientConfig"]["caBundle"])


async def test_a_renewal_is_served_once_the_api_server_trusts_it() -> None:
    """What the API server trusts always covers what it meets, whatever the day."""
    age = VALID - RENEW_BEFORE + timedelta(hours=2)
    kube, clock = FakeKube(), FakeClock((now() - age).timestamp())
    store = CertificateStore(kube, clock, NAMES)
    leader = WebhookRegistration(kube, clock, LiveConfiguration(DEFAULT, ""), store, url_address("127.0.0.1", 1))

    first = await store.refresh()
    soon = await leader.reconcile()
    assert await leader.reconcile() > soon
    await clock.advance(age.total_seconds())
    assert await leader.reconcile() == soon
    assert await store.agree() != first
    await handshake(store, first.authorities)
    await handshake(store, await trusted(kube))
    assert await leader.reconcile() > soon
    await handshake(store, await trusted(kube))
    with pytest.raises(ssl.SSLError):
        await handshake(store, first.authorities)


@pytest.mark.parametrize("stored", [None, {"ca.crt": "!"}])
async def test_what_the_leader_serves_is_trusted_until_it_serves_what_another_replica_made(
    stored: Object | None,
) -> None:
    """The Secret was deleted or damaged, and a replica that has just started knows of no certificate before."""
    kube = FakeKube()
    store = CertificateStore(kube, SystemClock(), NAMES)
    leader = WebhookRegistration(
        kube, SystemClock(), LiveConfiguration(DEFAULT, ""), store, url_address("127.0.0.1", 1)
    )

    first = await store.refresh()
    soon = await leader.reconcile()
    if stored is None:
        await kube.delete(SECRETS, "lamina-admission", namespace="lamina-system")
    else:
        secret = await kube.get(SECRETS, "lamina-admission", namespace="lamina-system")
        await kube.replace(SECRETS, secret | {"data": secret["data"] | stored})
    second = await CertificateStore(kube, SystemClock(), NAMES).refresh()
    assert second.authorities.count(b"BEGIN") == 1
    assert await leader.reconcile() == soon
    await handshake(store, await trusted(kube))
    assert await leader.reconcile() > soon
    await handshake(store, await trusted(kube))
    assert await leader.reconcile() == soon and await leader.reconcile() > soon
    assert await trusted(kube) == second.authorities != first.authorities


async def test_a_deleted_secret_is_made_again_without_a_gap() -> None:
    kube = FakeKube()
    store = CertificateStore(kube, SystemClock(), NAMES)
    first = await store.refresh()
    await kube.delete(SECRETS, "lamina-admission", namespace="lamina-system")
    second = await store.agree()
    assert second.certificate != first.certificate
    await handshake(store, second.authorities)


async def test_the_namespace_is_made_where_it_is_missing() -> None:
    class Strict(FakeKube):
        async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
            if resource == SECRETS and not (await self.list(NAMESPACES)).items:
                raise NotFound("namespaces lamina-system not found")
            return await super().create(resource, obj, namespace=namespace)

    kube = Strict()
    await CertificateStore(kube, SystemClock(), NAMES).refresh()
    assert [n["metadata"]["name"] for n in (await kube.list(NAMESPACES)).items] == ["lamina-system"]


async def test_a_missing_right_to_the_secret_is_reported() -> None:
    kube = FakeKube()
    kube.failing["get"] = lambda resource, name: Refused("secrets are forbidden")
    with pytest.raises(Outside, match="forbidden"):
        await CertificateStore(kube, SystemClock(), NAMES).refresh()


def test_no_key_of_an_authority_is_kept(made: Certificate, tmp_path: Path) -> None:
    assert b"PRIVATE KEY" not in made.authorities + made.certificate and made.key.count(b"BEGIN") == 1
