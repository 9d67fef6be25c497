"""The controller as a running program: connect, read the configuration, serve until a signal, and stop cleanly.

Several replicas may run. One leads and answers; the others keep their ledgers up to date and are not ready.
"""

import asyncio
import contextlib
import json
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from lamina.controller.admission.webhook_configuration import PATH
from lamina.controller.assembly import Controller, assemble, tasks_of
from lamina.controller.settings import ControllerSettings
from lamina.controller.startup import crds
from lamina.controller.startup.initial_config import read_initial_config
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.files import Files
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.listener import Address, bind, listening

log = logging.getLogger(__name__)


async def run(settings: ControllerSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadInput and Outside for what prevents the start."""
    kube = await connect(settings.kubeconfig, context=settings.context, again_s=AGAIN_S)
    try:
        await serve(kube, SystemClock(), settings, _stop_event())
    finally:
        await kube.close()


async def serve(kube: Kube, clock: Clock, settings: ControllerSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set."""
    events = EventRecorder(kube, "lamina", now=clock.wall)
    configuration = await read_initial_config(kube, clock, settings, events, stop)
    if configuration is None:
        return
    await crds.apply(kube)
    controller = assemble(kube, clock, settings, configuration, events)
    await controller.certificates.refresh()
    with bind("admission", settings.admission) as listener:
        await _serve_on(listener, controller, stop)
    await controller.background.drain()
    await controller.election.step_down()


async def _serve_on(listener: socket.socket, controller: Controller, stop: asyncio.Event) -> None:
    """Serve everything until `stop` is set, admission on a socket that is bound."""
    settings = controller.settings
    admission_address = Address(settings.admission.host, listener.getsockname()[1])
    async with (
        _extender(controller) as extender_address,
        _probes(controller),
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(task) for task in tasks_of(controller, listener)]
        _write_addresses(settings, extender_address, admission_address)
        log.info("The extender listens on %s, admission on %s", extender_address, admission_address)
        await stop.wait()
        for task in tasks:
            task.cancel()


@contextlib.asynccontextmanager
async def _probes(controller: Controller) -> AsyncIterator[None]:
    """Serve probes and metrics at an additional address, if the settings name one."""
    address = controller.settings.metrics
    if address is None:
        yield
        return
    async with listening("metrics", controller.extender.probes_application(), address):
        yield


def _extender(controller: Controller) -> AbstractAsyncContextManager[Address]:
    """Serve the extender, over TLS if the settings name a directory with certificates. Raises BadInput."""
    application, address, tls = controller.extender.application(), controller.settings.extender, controller.extender_tls
    if tls is None:
        return listening("the extender", application, address)
    tls.load()
    return listening("the extender", application, address, tls.context)


def _write_addresses(settings: ControllerSettings, extender: Address, admission: Address) -> None:
    scheme = "http" if settings.extender_tls is None else "https"
    urls = {"extender": f"{scheme}://{extender}", "admission": f"https://{admission}{PATH}"}
    if settings.addresses_file is not None:
        Files().write(settings.addresses_file, json.dumps(urls).encode())


def _stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
