"""The lab's scheduler, asking the control part's extender wherever that listens.

In a cluster a Service leads to the control part. Here it takes a free port and tells it in a file, and after a restart
that port is another one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lamina.dialects import config as configuration
from lamina.dialects import schedulers, vocabularies
from lamina.lab import commands
from lamina.lab.directory import LabDirectory
from lamina.lab.scheduler.extender import ExtenderConfig, Managed
from lamina.lab.scheduler.run import run
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube

EXTENDER_TIMEOUT_S = 10.0
_POLL_S = 0.1


async def schedule(kube: Kube, directory: LabDirectory) -> None:
    """Place pods from when the extender's address is known, until cancelled; begin anew where that address changes."""
    config = configuration.load(directory.config.read_text(), str(directory.config))
    managed = tuple(
        Managed(name, ignored_by_scheduler=name in names.ignored_by_scheduler)
        for names in vocabularies(config)
        for name in names.all
    )

    async def with_extender(url: str) -> None:
        extender = ExtenderConfig(url=url, managed=managed, timeout=EXTENDER_TIMEOUT_S)
        await run(kube, extender, SystemClock(), names=schedulers(config))

    await follow(lambda: commands.extender_url(directory), with_extender)


async def follow(address: Callable[[], str | None], serve: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Run `serve` with the address that is told now; end it and run it again whenever another one is told."""
    url = await _told(address, None)
    while True:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(url))
            url = await _told(address, url)
            serving.cancel()


async def _told(address: Callable[[], str | None], known: str | None) -> str:
    """The address, once there is one and it is not the known one."""
    while True:
        url = address()
        if url is not None and url != known:
            return url
        await asyncio.sleep(_POLL_S)
