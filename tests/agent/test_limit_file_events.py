"""A container that tampers with its files is named once: in the log, in a metric and in an event on its pod."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lamina.agent.containers.paths import folder_name
from lamina.agent.limits.arbitration import ArbitrationLoop
from lamina.agent.limits.memory_refusals import FileEvents
from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.ports.kube import EVENTS
from tests.agent.node import GPU, Node, container
from tests.enforcement.leases import lease
from tests.waiting import canceled


@asynccontextmanager
async def arbitrating(node: Node) -> AsyncIterator[None]:
    """With the loops running for a while."""
    events = FileEvents(node.context)
    arbitration = ArbitrationLoop(
        node.context, node.host, lambda folder, uuid: None, lambda gpu: 0, events.report, lambda pods: None
    )
    parts = [asyncio.create_task(part.run()) for part in (events, arbitration)]
    try:
        await node.clock.advance(1)
        yield
    finally:
        await canceled(*parts)


async def events_of(node: Node) -> list[tuple[str, str, str]]:
    items = (await node.kube.list(EVENTS)).items
    return [(each["involvedObject"]["name"], each["reason"], each["message"]) for each in items]


async def prepared(node: Node, pod: str, ticket: str) -> Path:
    """The directory of a container that was prepared."""
    uid = await node.pod(pod, container("main"))
    await node.admit(pod, {"main": [ticket]})
    await node.preparer.prepare([ticket])
    folder = node.places.containers / folder_name(uid, "main")
    write_container(folder, Limits(devices=(DeviceLimit(uuid=GPU[0], memory_bytes=1 << 30),)))
    return folder


async def test_a_file_that_grows_is_truncated_and_its_pod_is_named_once(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await prepared(node, "liar", "ticket-0")
    await prepared(node, "honest", "ticket-1")
    async with arbitrating(node):
        for size in (1 << 30, 1 << 31):
            os.truncate(folder / "usage", size)
            await node.clock.advance(1)
            assert (folder / "usage").stat().st_size == layout.usage_bytes(1)
    message = "container main: a process changed the size of its usage file; it is restored"
    assert await events_of(node) == [("liar", "LimitFilesChanged", message)]
    assert node.context.aside.counts == {"ContainerFiles": 1}
    assert [record.getMessage() for record in caplog.records if "liar" in record.getMessage()] == [
        "Setting aside ContainerFiles default/liar, container main: "
        "a process changed the size of its usage file; it is restored"
    ]


async def test_a_leased_file_is_named_and_the_loop_goes_on(node: Node) -> None:
    folder = await prepared(node, "liar", "ticket-0")
    with lease(folder / "usage") as taken:
        assert taken == "leased"
        async with arbitrating(node):
            assert [(pod, message) for pod, _, message in await events_of(node)] == [
                ("liar", "container main: its files cannot be used: a process has a lease on it")
            ]


async def test_a_directory_of_no_known_container_is_named_in_the_log(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    folder = node.places.containers / "unknown_main"
    folder.mkdir(parents=True)
    write_container(folder, Limits(devices=(DeviceLimit(uuid=GPU[0], memory_bytes=1 << 30),)))
    async with arbitrating(node):
        os.truncate(folder / "usage", 1 << 30)
        await node.clock.advance(1)
    assert "unknown_main" in caplog.text
    assert await events_of(node) == []
