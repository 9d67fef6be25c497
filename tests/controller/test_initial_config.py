"""A replica that starts while the ConfigMap is refused: it says so, answers nothing, and begins when it is fixed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.core.component_names import LEADER_LEASE
from lamina.errors import BadInput
from lamina.ports.clock import SystemClock
from lamina.ports.kube import CONFIG_MAPS, EVENTS, LEASES, MUTATING_WEBHOOKS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.listener import Address
from tests.waiting import until
from tests.worlds.objects import config_map

FREE = Address("127.0.0.1", 0)
BROKEN, WORSE, FIXED = "hami: {splitCount: 5}", "hami: [", "hami: {deviceSplitCount: 7}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Replica:
    def __init__(self, kube: FakeKube, probes: str, addresses: Path, session: aiohttp.ClientSession) -> None:
        self.kube, self.addresses = kube, addresses
        self._probes, self._session = probes, session

    async def asked(self, path: str) -> tuple[int, str]:
        try:
            async with self._session.get(f"{self._probes}/{path}") as response:
                return response.status, await response.text()
        except aiohttp.ClientConnectionError:
            return 0, ""

    async def says(self, status: int, word: str) -> None:
        async def so() -> bool:
            found, text = await self.asked("readyz")
            return found == status and word in text

        await until(so)

    async def refusals(self) -> list[str]:
        return [each["message"] for each in (await self.kube.list(EVENTS)).items]


@asynccontextmanager
async def begun(folder: Path, text: str) -> AsyncIterator[Replica]:
    kube, stop, addresses = FakeKube(), asyncio.Event(), folder / "addresses.json"
    await kube.create(CONFIG_MAPS, config_map(text))
    probes = Address("127.0.0.1", free_port())
    settings = ControllerSettings(extender_http=FREE, admission=FREE, metrics=probes, addresses_file=addresses)
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    async with aiohttp.ClientSession() as session:
        yield Replica(kube, f"http://{probes}", addresses, session)
        stop.set()
        await asyncio.wait_for(task, 60)


async def test_a_replica_waits_for_an_invalid_configmap_to_be_fixed(tmp_path: Path) -> None:
    async with begun(tmp_path, BROKEN) as replica:
        await replica.says(503, "unknown key splitCount in hami")
        assert await replica.asked("healthz") == (200, "ok")
        assert (await replica.asked("warmz"))[0] == 503
        await replica.kube.replace(CONFIG_MAPS, config_map(WORSE))
        await replica.says(503, "invalid YAML")
        assert len(await until(replica.refusals)) == 2
        for kind in (LEASES, MUTATING_WEBHOOKS):
            assert not (await replica.kube.list(kind)).items, "it leads or registers"
        assert not replica.addresses.exists()
        await replica.kube.replace(CONFIG_MAPS, config_map(FIXED))
        await replica.says(200, "ok")
        assert (await replica.kube.get(LEASES, LEADER_LEASE, namespace="lamina-system"))["spec"]["holderIdentity"]
        assert msgspec.json.decode(replica.addresses.read_bytes())["extenderHttp"]


async def test_a_replica_that_waits_can_be_stopped(tmp_path: Path) -> None:
    async with begun(tmp_path, BROKEN) as replica:
        await replica.says(503, "unknown key")


async def test_a_file_that_is_refused_ends_the_start(tmp_path: Path) -> None:
    path = tmp_path / "lamina.yaml"
    path.write_text(BROKEN)
    with pytest.raises(BadInput, match="unknown key splitCount"):
        await serve(
            FakeKube(),
            SystemClock(),
            ControllerSettings(config=path, extender_http=FREE, admission=FREE),
            asyncio.Event(),
        )
