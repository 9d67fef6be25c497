"""One plugin for each MIG resource. One that came to be stays known to kubelet, with no devices when they went."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lamina.agent.current import Current
from lamina.agent.mig.plugin import MigPlugin
from lamina.agent.mig.specs import Specs
from lamina.agent.registration import Registration
from lamina.agent.tickets import Kind, Ticket
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files

log = logging.getLogger(__name__)

Offered = Mapping[str, tuple[Ticket, ...]]
"""The MIG devices of a node by resource."""


class Served(NamedTuple):
    """Where plugins are served: kubelet's folder of plugins."""

    folder: Path
    specs: Specs
    files: Files
    clock: Clock


async def serving_mig(offered: Current[Offered | None], served: Served) -> None:
    """Serve a plugin for each resource that is offered, for ever."""
    now: dict[str, Current[tuple[Ticket, ...]]] = {}

    def exists(uuid: str) -> bool:
        return any(uuid == each for devices in (offered.value or {}).values() for each, _ in devices)

    async with asyncio.TaskGroup() as group:
        version = -1
        while True:
            version, resources = await offered.after(version)
            if resources is None:
                continue
            for name in resources.keys() - now.keys():
                now[name] = Current(())
                kind = Kind(name, name.partition("/")[2])
                plugin = MigPlugin(name, now[name], served.specs, exists)
                registration = Registration(plugin, served.folder, kind, files=served.files, clock=served.clock)
                group.create_task(registration.keep())
            for name, devices in now.items():
                devices.set(resources.get(name, ()))
            try:
                served.specs.sweep([uuid for devices in resources.values() for uuid, _ in devices])
            except Outside as error:
                log.warning("Specs of MIG devices that are gone stay: %s", error)
