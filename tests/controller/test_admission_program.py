"""Admission as a program of its own: it follows what it needs from the API server, and needs no controller."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from lamina import __version__
from lamina.admission import certificates, served_certificate
from lamina.admission.certificate_store import CertificateStore
from lamina.admission.native_offers import NativeOffers
from lamina.admission.review import Demand
from lamina.admission.run import serve
from lamina.admission.served_certificate import ServedCertificate
from lamina.admission.settings import AdmissionSettings
from lamina.errors import Outside
from lamina.ports.certificates import server_context
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.kube import CONFIG_MAPS, INVENTORIES, MUTATING_WEBHOOKS, SECRETS, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.listener import Address
from lamina.ports.set_aside import SetAside
from tests.controller.admission_worker import UNVERIFIED, review_of
from tests.waiting import until
from tests.worlds.objects import config_map, gpu_pod

FREE = Address("127.0.0.1", 0)
DEMAND = Demand(native_devices=("nvidia.com/gpu",), only_native_reason="it is privileged")
READING = "Lamina is still reading the cluster; create the pod again"


@dataclass
class Alone:
    """Admission without a controller."""

    urls: dict[str, str]
    session: aiohttp.ClientSession

    async def review(self, pod: Object) -> Any:
        async with self.session.post(self.urls["admission"], data=review_of(pod), ssl=UNVERIFIED) as response:
            return msgspec.json.decode(await response.read())["response"]

    async def page(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"{self.urls['metrics']}/{path}") as response:
            return response.status, await response.text()


@asynccontextmanager
async def alone(kube: FakeKube, folder: Path) -> AsyncIterator[Alone]:
    file, stop = folder / "addresses.json", asyncio.Event()
    settings = AdmissionSettings(bind=FREE, metrics=FREE, addresses_file=file)
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    await until(file.exists, task=task)
    async with aiohttp.ClientSession() as session:
        made = Alone(msgspec.json.decode(file.read_bytes()), session)

        async def ready() -> bool:
            return (await made.page("readyz"))[0] == 200

        await until(ready, task=task)
        yield made
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_it_serves_and_counts_while_no_controller_runs(tmp_path: Path) -> None:
    async with alone(FakeKube(), tmp_path) as admission:
        assert (await admission.review(gpu_pod(gpu=1, gpumem=1000)))["allowed"]
        assert not (await admission.review(gpu_pod(gpu=-1)))["allowed"]
        _, shown = await admission.page("metrics")
        assert f'lamina_build_info{{version="{__version__}"}} 1.0' in shown
        for outcome in ("allowed", "refused"):
            assert f'lamina_decisions_total{{outcome="{outcome}",verb="admit"}} 1.0' in shown


async def test_it_follows_the_configuration_and_keeps_the_last_good_one(tmp_path: Path) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("schedulerName: first"))
    async with alone(kube, tmp_path) as admission:

        async def unchanged_for(scheduler: str) -> bool:
            return "patch" not in await admission.review(gpu_pod(gpumem=1000, scheduler=scheduler))

        assert await unchanged_for("second") and not await unchanged_for("first")
        await kube.replace(CONFIG_MAPS, config_map("schedulerName: second"))

        async def in_force() -> bool:
            return await unchanged_for("first") and not await unchanged_for("second")

        await until(in_force)
        await kube.replace(CONFIG_MAPS, config_map("schedulerName: ["))

        async def refused() -> bool:
            return 'lamina_objects_set_aside_total{kind="configmaps"} 1.0' in (await admission.page("metrics"))[1]

        await until(refused)
        assert await in_force()


@pytest.fixture
async def offers() -> AsyncIterator[tuple[FakeKube, NativeOffers, SetAside]]:
    kube, aside = FakeKube(), SetAside(served_certificate.log)
    made = NativeOffers(kube, FakeClock(), aside)
    assert made.refusal(DEMAND) == made.refusal(Demand()) == READING
    task = asyncio.create_task(made.follow())
    await until(made.synced.is_set, task=task)
    yield kube, made, aside
    task.cancel()


async def test_a_demand_needs_a_node_that_offers_all_its_devices(
    offers: tuple[FakeKube, NativeOffers, SetAside],
) -> None:
    kube, made, aside = offers
    assert made.refusal(Demand()) == "" and made.refusal(DEMAND) == "it is privileged"
    offered = [{"resource": "nvidia.com/gpu", "count": 1}]
    await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": {"node": "n", "nativeResources": offered}})
    await until(lambda: made.refusal(DEMAND) == "")
    two = Demand(native_devices=("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"), only_native_reason="it is privileged")
    assert made.refusal(two) == "it is privileged"
    await kube.patch(INVENTORIES, "n", {"spec": {"nativeResources": "odd"}})
    await until(lambda: made.refusal(DEMAND) != "")
    assert aside.counts == {"inventories": 1}, "one that cannot be read offers nothing"


def registration(bundle: bytes) -> Object:
    webhook = {"clientConfig": {"caBundle": base64.b64encode(bundle).decode()}}
    return {"metadata": {"name": "lamina.dev"}, "webhooks": [webhook]}


async def test_a_certificate_is_served_once_the_api_server_trusts_it() -> None:
    kube, clock = FakeKube(), SystemClock()
    store = CertificateStore(kube, clock, ["127.0.0.1"])
    waiting = FakeClock(clock.wall())
    served = ServedCertificate(kube, waiting, store, server_context())
    await served.reconcile()
    first = store.served
    assert first is not None and served.ready.is_set(), "where no webhook is registered, there is nothing to wait for"
    await kube.create(MUTATING_WEBHOOKS, registration(first.authorities))
    await kube.delete(SECRETS, "lamina-admission", namespace="lamina-system")
    second = await CertificateStore(kube, clock, ["127.0.0.1"]).agree()
    with pytest.raises(Outside, match="does not trust the newest one yet"):
        await served.reconcile()
    assert store.served == first
    both = registration(second.authorities + first.authorities)
    await kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": both["webhooks"]})
    task = asyncio.create_task(served.reconcile())
    await asyncio.sleep(0)
    assert store.served == first, "not all API servers have noticed yet"
    await until(task.done, clock=waiting, step_s=1.0)
    assert store.served == second


async def test_one_that_starts_is_not_ready_before_its_certificate_is_trusted() -> None:
    kube, clock = FakeKube(), SystemClock()
    other = certificates.create(["127.0.0.1"], datetime.now(UTC))
    await kube.create(MUTATING_WEBHOOKS, registration(other.authorities))
    tls: ssl.SSLContext = server_context()
    served = ServedCertificate(kube, clock, CertificateStore(kube, clock, ["127.0.0.1"]), tls)
    with pytest.raises(Outside):
        await served.reconcile()
    assert not served.ready.is_set()
