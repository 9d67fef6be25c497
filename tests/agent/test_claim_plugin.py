"""The driver as the lab's kubelet meets it: real gRPC over a unix socket, in both versions of the protocol."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.agent.kubelet.claim_plugin import ClaimPlugin, ClaimRegistration
from lamina.dra.names import DRIVER, cdi_name
from lamina_lab.kubelet.claims.driver import ClaimError, Driver
from lamina_lab.kubelet.claims.drivers import Drivers
from lamina_lab.kubelet.claims.records import NodeClaim
from tests.agent.claim_nodes import ClaimNode, result
from tests.waiting import until

CLAIM = NodeClaim("uid-of-c", "default", "c")


class Served:
    """A driver that a kubelet has found in its folder."""

    def __init__(self, root: Path) -> None:
        self.node = ClaimNode(root, kubelet_dir=root / "k")
        self.folder = root / "k" / "plugins_registry"
        self.drivers = Drivers(self.folder)
        plugin = ClaimPlugin(self.node.context, self.node.claims)
        self.registration = ClaimRegistration(self.node.context, plugin)

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
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
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
