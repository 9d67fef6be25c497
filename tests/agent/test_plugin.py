"""The plugin as kubelet meets it: real gRPC over unix sockets."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from lamina.agent.inventory.tickets import KubeletDevice
from lamina.agent.kubelet.plugin import NoTickets, ResourcePlugin
from lamina.agent.kubelet.registration import LOOK_S, MISCOUNTED_S, UNWATCHED_S, Registration
from lamina.agent.state.observed import Observable
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.allocations import Holder, KubeletPodResources
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginStub
from lamina.ports.kubelet.fake import FakeKubelet
from lamina.ports.kubelet.servers import POD_RESOURCES_SOCKET, serving
from tests.agent.node import KIND, RESOURCE, Node, container
from tests.waiting import canceled, until

TWENTY = tuple(KubeletDevice(f"ticket-{n}", True) for n in range(20))

AGAIN = f"Registering {RESOURCE} again"


class Registered:
    """A plugin that keeps itself registered with a fake kubelet."""

    def __init__(self, node: Node, kubelet: FakeKubelet) -> None:
        self.node = node
        self.kubelet = kubelet
        self.tickets = Observable(TWENTY)
        self.plugin = ResourcePlugin(
            RESOURCE,
            self.tickets,
            node.record,
            tickets=node.preparer,
            native=NoTickets("none here"),
            aside=node.context.aside,
        )
        self.clock = FakeClock()
        self.counted: int | None = 20
        self.registration = Registration(
            self.plugin,
            kubelet.plugins,
            KIND,
            files=Files(),
            clock=self.clock,
            counted=lambda: self.counted,
            pauses_s=(0.1,),
        )

    @contextlib.asynccontextmanager
    async def call(self) -> AsyncIterator[DevicePluginStub]:
        async with self.kubelet.channel(RESOURCE) as channel:
            yield DevicePluginStub(channel)

    async def pass_time(self, until_healthy: int) -> None:
        """Let the agent's clock run until kubelet knows so many healthy tickets."""

        def reported() -> bool:
            found = self.kubelet.devices.get(RESOURCE)
            return found is not None and sum(found.values()) == until_healthy

        await until(reported, clock=self.clock, step_s=LOOK_S)


@pytest.fixture
async def registered(node: Node) -> AsyncIterator[Registered]:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        kubelet = FakeKubelet(Path(folder))
        await kubelet.start()
        made = Registered(node, kubelet)
        keeping = asyncio.create_task(made.registration.run())
        await kubelet.until(RESOURCE, 20)
        yield made
        await canceled(keeping)
        await kubelet.stop()


def request(*containers: list[str]) -> messages.AllocateRequest:
    return messages.AllocateRequest(
        container_requests=[messages.ContainerAllocateRequest(devices_ids=tickets) for tickets in containers]
    )


async def test_it_registers_and_sends_its_tickets(registered: Registered) -> None:
    (registration,) = registered.kubelet.registrations
    assert (registration.version, registration.endpoint, registration.resource_name) == (
        "v1beta1",
        KIND.endpoint,
        RESOURCE,
    )
    assert registration.options.pre_start_required
    assert not registration.options.get_preferred_allocation_available
    async with registered.call() as plugin:
        assert await plugin.GetDevicePluginOptions(messages.Empty()) == registration.options
    assert set(registered.kubelet.devices[RESOURCE]) == {ticket.id for ticket in TWENTY}


async def test_changed_tickets_are_sent(registered: Registered) -> None:
    registered.tickets.set(tuple(KubeletDevice(ticket.id, int(ticket.id[7:]) < 10) for ticket in TWENTY))
    assert len(await registered.kubelet.until(RESOURCE, 10)) == 20
    registered.tickets.set(())
    assert await registered.kubelet.until(RESOURCE, 0) == {}


async def test_allocate_answers_with_a_fresh_name_and_nothing_else(registered: Registered) -> None:
    async with registered.call() as plugin:
        answer = await plugin.Allocate(request(["ticket-0", "ticket-1"], ["ticket-2"]))
        again = await plugin.Allocate(request(["ticket-2"]))
    names = []
    for part in (*answer.container_responses, *again.container_responses):
        (device,) = part.cdi_devices
        kind, _, name = device.name.partition("=")
        assert kind == "lamina.dev/ticket"
        assert len(name) == 32
        assert dict(part.annotations) == {f"cdi.k8s.io/lamina_{name}": device.name}
        assert not (part.envs or part.mounts or part.devices)
        names.append(name)
    assert len(set(names)) == 3
    recorded = json.loads((registered.node.root / "record.json").read_text())["allocations"]
    assert [entry["name"] for entry in recorded] == names
    assert recorded[0]["tickets"] == ["ticket-0", "ticket-1"]


async def test_pre_start_prepares_or_says_why_not(registered: Registered) -> None:
    node = registered.node
    await node.pod("p", container("main"))
    async with registered.call() as plugin:
        answer = await plugin.Allocate(request(["ticket-0"]))
        with pytest.raises(grpc.RpcError) as caught:
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=["ticket-0"]))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert caught.value.details().startswith("Lamina: kubelet lists no container with these tickets")
        node.kubelet.hold("p", "main", "ticket-0")
        await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=["ticket-0"]))
    name = answer.container_responses[0].cdi_devices[0].name.partition("=")[2]
    assert node.limits(name) == "main:0:1000"


async def test_a_disk_that_fails_is_an_error_of_allocate(registered: Registered) -> None:
    (registered.node.root / "record.json").mkdir()
    async with registered.call() as plugin:
        with pytest.raises(grpc.RpcError) as caught:
            await plugin.Allocate(request(["ticket-0"]))
    assert "cannot write" in caught.value.details()
    assert registered.node.record.allocations == ()


async def test_forty_pods_at_once(registered: Registered) -> None:
    node = registered.node
    pods = [f"p{n}" for n in range(40)]
    for number, pod in enumerate(pods):
        await node.pod(pod, container("main"))
        node.kubelet.hold(pod, "main", f"ticket-{number}")

    async with registered.call() as plugin:

        async def start(number: int) -> str:
            answer = await plugin.Allocate(request([f"ticket-{number}"]))
            await plugin.PreStartContainer(messages.PreStartContainerRequest(devices_ids=[f"ticket-{number}"]))
            name: str = answer.container_responses[0].cdi_devices[0].name.partition("=")[2]
            return name

        names = await asyncio.gather(*(start(number) for number in range(40)))
    assert len(set(names)) == 40
    for name in names:
        assert node.limits(name) == "main:0:1000"
    bound = {a.name: a.bound.pod for a in node.record.allocations if a.bound}
    assert [bound[name] for name in names] == pods


async def test_it_registers_again_with_a_restarted_kubelet(registered: Registered) -> None:
    await registered.kubelet.stop()
    await registered.clock.advance(3 * LOOK_S)
    await registered.kubelet.start()
    await registered.pass_time(20)
    assert len(registered.kubelet.registrations) == 2


async def test_it_registers_again_when_its_socket_was_removed(registered: Registered) -> None:
    (registered.kubelet.plugins / KIND.endpoint).unlink()
    registered.kubelet.devices.clear()
    await registered.pass_time(20)
    assert len(registered.kubelet.registrations) == 2


async def test_it_registers_again_when_kubelet_stops_watching(
    registered: Registered, caplog: pytest.LogCaptureFixture
) -> None:
    for stream in registered.kubelet._streams:
        stream.cancel()
    registered.kubelet.devices.clear()
    await until(lambda: not registered.plugin.watched)
    await registered.clock.advance(UNWATCHED_S - 2 * LOOK_S)
    assert AGAIN not in caplog.text
    await registered.pass_time(20)
    assert len(registered.kubelet.registrations) == 2


async def test_it_registers_again_when_the_node_counts_tickets_of_another_plugin(
    registered: Registered, caplog: pytest.LogCaptureFixture
) -> None:
    """Older kubelets listen to both. The stream of the first one lives on, and its devices are forgotten."""
    registered.counted = 2
    await registered.clock.advance(MISCOUNTED_S - 2 * LOOK_S)
    registered.counted = 20
    await registered.clock.advance(2 * LOOK_S)
    registered.counted = 0
    await registered.clock.advance(MISCOUNTED_S - 2 * LOOK_S)
    assert AGAIN not in caplog.text
    registered.kubelet.devices.clear()
    await registered.pass_time(20)
    assert len(registered.kubelet.registrations) == 2


async def test_a_node_that_says_nothing_of_the_resource_is_no_reason(
    registered: Registered, caplog: pytest.LogCaptureFixture
) -> None:
    registered.counted = None
    await registered.clock.advance(3 * MISCOUNTED_S)
    assert AGAIN not in caplog.text


async def test_it_keeps_trying_while_kubelet_refuses_or_is_away(node: Node) -> None:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        kubelet = FakeKubelet(Path(folder))
        kubelet.plugins.mkdir(parents=True)
        made = Registered(node, kubelet)
        keeping = asyncio.create_task(made.registration.run())
        await made.clock.advance(1)
        kubelet.refuse = "not now"
        await kubelet.start()
        await made.clock.advance(1)
        assert kubelet.registrations == []
        kubelet.refuse = ""
        await made.pass_time(20)
        await canceled(keeping)
        assert not (kubelet.plugins / KIND.endpoint).exists()
        await kubelet.stop()


async def test_a_socket_path_that_is_too_long_is_bad_input(node: Node, tmp_path: Path) -> None:
    plugin = ResourcePlugin(
        RESOURCE,
        Observable(TWENTY),
        node.record,
        tickets=node.preparer,
        native=NoTickets("none here"),
        aside=node.context.aside,
    )
    with pytest.raises(BadInput, match="must have at most 107 bytes"):
        async with serving(plugin, tmp_path / ("x" * 120)):
            pass


async def test_pod_resources_unites_the_entries_of_a_container() -> None:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        kubelet = FakeKubelet(Path(folder))
        held = Holder("default", "p", "main", frozenset({"ticket-1", "ticket-0"}))
        kubelet.held = [(RESOURCE, held), ("example.com/other", Holder("default", "q", "main", frozenset({"x"})))]
        await kubelet.start()
        asked = KubeletPodResources(Path(folder) / POD_RESOURCES_SOCKET)
        assert await asked.holders({RESOURCE}) == (held,)
        await kubelet.stop()
