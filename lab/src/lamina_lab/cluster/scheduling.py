"""The lab's scheduler, connected to the controller's extender.

In a cluster, a Service points to the controller. In the lab the controller picks a free port and writes it to a file.
After a restart the port is a different one.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from lamina import configuration
from lamina.core.component_names import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    EXTENDER_CLIENT_SECRET,
    FILTER_TO_BEST,
    KEY_FILE,
    extender_name,
)
from lamina.dialects import DEFAULT_SCHEDULER, resource_names, scheduler_names
from lamina.install.scheduler_config import DECIDING_WEIGHT
from lamina.ports.certificates import use_certificate
from lamina.ports.clock import SystemClock
from lamina.ports.kube import SECRETS, Kube
from lamina.ports.kube.secret_objects import content_of
from lamina_lab.cluster import commands
from lamina_lab.host.directory import LabDirectory
from lamina_lab.scheduler.extender import ExtenderConfig, ManagedResource
from lamina_lab.scheduler.run import run

EXTENDER_TIMEOUT_S = 10.0
_POLL_S = 0.1


async def schedule(kube: Kube, directory: LabDirectory) -> None:
    """Place pods until canceled: those of Lamina's schedulers as soon as the extender's address is known, and again
    when it changes.

    As on any cluster the default scheduler does not ask the extender, unless pods are to keep that scheduler.
    """
    config = configuration.load(directory.config.read_text(), str(directory.config))
    keeps = not config.schedulers.assigned
    extended = [name for name in scheduler_names(config) if keeps or name != DEFAULT_SCHEDULER]
    managed = tuple(
        ManagedResource(name, ignored_by_scheduler=name in names.ignored_by_scheduler)
        for names in resource_names(config)
        for name in names.all
    )

    async def with_extender(url: str) -> None:
        tls = await client_context(kube)
        extender = ExtenderConfig(
            url=url,
            managed=managed,
            filter_verb=FILTER_TO_BEST,
            weight=DECIDING_WEIGHT,
            timeout=EXTENDER_TIMEOUT_S,
            tls=tls,
            server_name=extender_name(kube.lamina_namespace),
        )
        await run(kube, extender, SystemClock(), names=extended)

    async with asyncio.TaskGroup() as group:
        if DEFAULT_SCHEDULER not in extended:
            group.create_task(run(kube, None, SystemClock(), names=(DEFAULT_SCHEDULER,)))
        group.create_task(follow(lambda: commands.extender_url(directory), with_extender))


async def client_context(kube: Kube) -> ssl.SSLContext:
    """TLS with the certificate that the controller has created for kube-scheduler. Raises Outside."""
    secret = await kube.get(SECRETS, EXTENDER_CLIENT_SECRET, namespace=kube.lamina_namespace)
    context = ssl.create_default_context(cadata=content_of(secret, AUTHORITY_FILE).decode())
    use_certificate(context, content_of(secret, CERTIFICATE_FILE), content_of(secret, KEY_FILE))
    return context


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
