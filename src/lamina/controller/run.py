"""The controller as a running program: connect, read the configuration, serve until a signal, and stop cleanly.

Several replicas may run. One leads and answers; the others keep their ledgers up to date and are not ready.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping

from lamina.config_source.initial import ConfigAt, read_initial_config
from lamina.controller import crds
from lamina.controller.assembly import Controller, assemble, tasks_of
from lamina.controller.settings import ControllerSettings
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.files import Files
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.listener import Address, listening_if_set
from lamina.ports.metrics import metrics_context
from lamina.ports.supervision import stop_event

log = logging.getLogger(__name__)


async def run(settings: ControllerSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadInput and Outside for what prevents the start."""
    kube = await connect(
        settings.kubeconfig, context=settings.context, again_s=AGAIN_S, lamina_namespace=settings.namespace
    )
    try:
        await serve(kube, SystemClock(), settings, stop_event())
    finally:
        await kube.close()


async def serve(kube: Kube, clock: Clock, settings: ControllerSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set."""
    events = EventRecorder(kube, "lamina", now=clock.wall)
    at = ConfigAt(settings.config, settings.metrics or settings.extender_http, settings.protects_probes)
    configuration = await read_initial_config(kube, clock, at, events, stop)
    if configuration is None:
        return
    await crds.apply(kube)
    controller = assemble(kube, clock, settings, configuration, events)
    await controller.certificates.refresh()
    await _serve(controller, stop)
    await controller.background.drain()
    await controller.election.step_down()


async def _serve(controller: Controller, stop: asyncio.Event) -> None:
    """Serve everything until `stop` is set."""
    settings = controller.settings
    protection = metrics_context(controller.context.clock.wall()) if settings.protect_metrics else None
    async with (
        _extender(controller) as extender,
        listening_if_set("the extender over HTTP", controller.extender.application(), settings.extender_http) as plain,
        listening_if_set("metrics", controller.extender.probes_application(), settings.metrics, protection) as metrics,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(task) for task in tasks_of(controller)]
        scheme = "http" if protection is None else "https"
        services = {"extender": ("https", extender), "extenderHttp": ("http", plain), "metrics": (scheme, metrics)}
        urls = {name: f"{protocol}://{address}" for name, (protocol, address) in services.items() if address}
        _write_addresses(settings, urls)
        log.info("Listening: %s", ", ".join(f"{name} on {url}" for name, url in urls.items()))
        await stop.wait()
        for task in tasks:
            task.cancel()


@contextlib.asynccontextmanager
async def _extender(controller: Controller) -> AsyncIterator[Address | None]:
    """Serve the extender over TLS, if the settings name an address. Raises BadInput and Outside."""
    tls, context = controller.extender_tls, None
    if tls is not None:
        await tls.load()
        context = tls.context
    async with listening_if_set(
        "the extender", controller.extender.application(), controller.settings.extender, context
    ) as at:
        yield at


def _write_addresses(settings: ControllerSettings, urls: Mapping[str, str]) -> None:
    if settings.addresses_file is not None:
        Files().write(settings.addresses_file, json.dumps(urls).encode())
