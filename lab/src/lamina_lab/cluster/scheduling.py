"""The lab's scheduler, connected to the controller's extender.

In a cluster, a Service points to the controller. In the lab the controller picks a free port and writes it to a file.
After a restart the port is a different one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lamina import configuration
from lamina.dialects import resource_names, scheduler_names
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube
from lamina_lab.cluster import commands
from lamina_lab.host.directory import LabDirectory
from lamina_lab.scheduler.extender import ExtenderConfig, ManagedResource
from lamina_lab.scheduler.run import run

EXTENDER_TIMEOUT_S = 10.0
_POLL_S = 0.1


async def schedule(kube: Kube, directory: LabDirectory) -> None:
    """Place pods as soon as the extender's address is known, until canceled. Restart when the address changes."""
    config = configuration.load(directory.config.read_text(), str(directory.config))
    managed = tuple(
        ManagedResource(name, ignored_by_scheduler=name in names.ignored_by_scheduler)
        for names in resource_names(config)
        for name in names.all
    )

    async def with_extender(url: str) -> None:
        extender = ExtenderConfig(url=url, managed=managed, timeout=EXTENDER_TIMEOUT_S)
        await run(kube, extender, SystemClock(), names=scheduler_names(config))

    await follow(lambda: commands.extender_url(directory), with_extender)


async def follow(address: Callable[[], str | None], serve: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Run `serve` with the current address; cancel it and run it again whenever the address changes."""
    url = await _new_address(address, None)
    while True:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(url))
            url = await _new_address(address, url)
            serving.cancel()


async def _new_address(address: Callable[[], str | None], known: str | None) -> str:
    """Wait for an address that differs from `known`."""
    while True:
        url = address()
        if url is not None and url != known:
            return url
        await asyncio.sleep(_POLL_S)
