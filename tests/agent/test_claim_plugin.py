"""The driver as the lab's kubelet meets it: real gRPC over a unix socket, in both versions of the protocol."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.kubelet.claim_plugin import REPEAT_S, TIMEOUT_S, ClaimHealth, ClaimPlugin, ClaimRegistration
from lamina.dra.names import DRIVER, cdi_name
from lamina.ports.kubelet import drahealth_pb2
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthStub
from lamina_lab.kubelet.claims.driver import ClaimError, Driver, open_channel
from lamina_lab.kubelet.claims.drivers import Drivers
from lamina_lab.kubelet.claims.records import NodeClaim
from tests.agent.claim_nodes import ClaimNode, result
from tests.waiting import canceled, until

CLAIM = NodeClaim("uid-of-c", "default", "c")


class Served:
    """A driver that a kubelet has found in its folder."""

    def __init__(self, root: Path) -> None:
        self.node = ClaimNode(root, kubelet_dir=root / "k")
        self.folder = root / "k" / "plugins_registry"
        self.drivers = Drivers(self.folder)
        plugin = ClaimPlugin(self.node.context, self.node.claims)
        health = ClaimHealth(self.node.context, self.node.offer, self.node.offers)
        self.registration = ClaimRegistration(self.node.context, plugin, health)

    async def driver(self) -> Driver:
        found: list[Driver] = []

        async def registered() -> bool:
            await self.drivers.look()
            with contextlib.suppress(ClaimError):
                found.append(self.drivers.find(DRIVER))
            return bool(found)

        await until(registered, clock=self.node.clock)
        return found[-1]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        served = Served(Path(folder))
        task = asyncio.create_task(served.registration.run())
        yield served
        await canceled(task)
        await served.drivers.close()


async def test_kubelet_registers_it_and_prepares_a_claim(served: Served) -> None:
    driver = await served.driver()
    await served.node.claim("c", result(memory="4Gi"))
    (device,) = await driver.prepare(CLAIM)
    assert (device.device, device.pool, device.requests, device.share) == ("gpu-0", "node-1", ("gpu",), "share-of-gpu")
    assert device.cdi == (f"lamina.dev/ticket={cdi_name('uid-of-c', 'gpu')}",)
    await driver.unprepare(CLAIM)
    assert served.node.left() == []


async def test_both_versions_of_the_protocol_are_served(served: Served) -> None:
    await served.driver()
    (socket,) = served.folder.iterdir()
    await served.node.claim("c")
    old = Driver(DRIVER, socket, "v1beta1")
    assert [each.device for each in await old.prepare(CLAIM)] == ["gpu-0"]
    await old.close()


async def test_a_failure_is_a_sentence_for_the_pods_status(served: Served) -> None:
    driver = await served.driver()
    with pytest.raises(ClaimError, match="Lamina: claim default/c with the UID uid-of-c does not exist"):
        await driver.prepare(CLAIM)


async def test_a_defect_concerns_one_claim_only(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*arguments: object) -> None:
        raise RuntimeError("a defect")

    driver = await served.driver()
    monkeypatch.setattr(served.node.claims, "_prepare_new", broken)
    await served.node.claim("c")
    with pytest.raises(ClaimError, match="Lamina: a defect; see the agent's log"):
        await driver.prepare(CLAIM)
    await driver.unprepare(CLAIM)


async def test_a_socket_that_was_removed_is_served_again(served: Served) -> None:
    await served.driver()
    (socket,) = served.folder.iterdir()
    before = socket.stat().st_ctime_ns
    socket.unlink()
    await until(lambda: socket.exists() and socket.stat().st_ctime_ns != before, clock=served.node.clock)
    await served.driver()


class HealthStream:
    """What is reported to kubelet: a map of unhealthy ones with the reason, for each message."""

    def __init__(self, socket: Path) -> None:
        self._channel = open_channel(socket)
        stub: Any = DRAResourceHealthStub(self._channel)
        self._call = stub.NodeWatchResources(drahealth_pb2.NodeWatchResourcesRequest())

    async def read(self, served: Served) -> dict[str, str]:
        """The next message. Time passes until there is one."""
        reading = asyncio.ensure_future(self._call.read())
        await until(reading.done, clock=served.node.clock)
        message = reading.result()
        assert {each.device.pool_name for each in message.devices} == {"node-1"}
        assert [each.device.device_name for each in message.devices] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        assert {each.health_check_timeout_seconds for each in message.devices} == {TIMEOUT_S}
        unhealthy = {each.device.device_name: each.message for each in message.devices if each.message}
        assert [each.health == drahealth_pb2.UNHEALTHY for each in message.devices] == [
            each.device.device_name in unhealthy for each in message.devices
        ]
        return unhealthy

    async def close(self) -> None:
        self._call.cancel()
        await self._channel.close()


async def test_the_health_of_devices_is_reported_when_it_changes_and_again(served: Served) -> None:
    await served.driver()
    (socket,) = served.folder.iterdir()
    stream = HealthStream(socket)
    assert await stream.read(served) == {}
    served.node.observe(gpu1="the driver reported XID 79")
    assert await stream.read(served) == {"gpu-1": "the driver reported XID 79"}
    served.node.observe(gpu1="x" * 2000)
    assert await stream.read(served) == {"gpu-1": "x" * 1024}
    served.node.observe()
    assert await stream.read(served) == {}
    before = served.node.clock.monotonic()
    assert await stream.read(served) == {}
    assert REPEAT_S <= served.node.clock.monotonic() - before < TIMEOUT_S
    await served.node.prepared("c", result(device="gpu-2", memory="1Gi"))
    before = served.node.clock.monotonic()
    assert await stream.read(served) == {}, "a device in use comes first in its slice, which is no change of health"
    assert served.node.clock.monotonic() - before >= REPEAT_S - 1
    await stream.close()
