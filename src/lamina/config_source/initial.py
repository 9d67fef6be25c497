"""The configuration with which a program of the controller's pod starts.

No previous configuration could stay in force, so while the one in the ConfigMap is refused, the replica waits for
another one. It answers probes with the reason, answers nothing else, and takes no part in the leader election. Replicas
that started with a valid configuration continue with it; where there is none, no pod with GPUs is admitted or placed.
"""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from lamina.config_source.live import (
    LiveConfiguration,
    read_config_map,
    read_file,
    wait_for_valid_config_map,
)
from lamina.errors import BadInput
from lamina.ports.clock import Clock
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.listener import Address, listening_if_set
from lamina.ports.metrics import metrics_context

log = logging.getLogger(__name__)


class ConfigAt(NamedTuple):
    """Where a program reads its configuration, and where it answers probes while that is refused."""

    file: Path | None
    """None for the ConfigMap."""
    probes: Address | None
    protected: bool
    """Whether probes are served over HTTPS."""


async def read_initial_config(
    kube: Kube, clock: Clock, at: ConfigAt, events: EventRecorder | None, stop: asyncio.Event
) -> LiveConfiguration | None:
    """The first valid configuration; None where `stop` was set before there was one.

    Raises BadInput for a file that is refused, because only the person who named it can correct it, and Outside.
    """
    if at.file is not None:
        return await read_file(at.file)
    try:
        return await read_config_map(kube)
    except BadInput as problem:
        log.error("No request is answered until the configuration is corrected: %s", problem)
        probes = UnreadyProbes(str(problem))
    tls = metrics_context(clock.wall()) if at.protected else None  # the scheme of the probes stays the same
    async with listening_if_set("probes", probes.application(), at.probes, tls):
        corrected = asyncio.create_task(wait_for_valid_config_map(kube, clock, events, probes.set_reason))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({corrected, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return corrected.result() if corrected.done() else None
        finally:
            corrected.cancel()
            stopped.cancel()


class UnreadyProbes:
    """Answers probes meanwhile: the process is healthy, and why it is not ready."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def set_reason(self, reason: str) -> None:
        """The configuration is now refused for this reason."""
        if reason != self._reason:
            log.error("The configuration is still refused: %s", reason)
            self._reason = reason

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        for path in ("/warmz", "/readyz"):
            app.router.add_get(path, self._not_ready)
        return app

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _not_ready(self, request: web.Request) -> web.Response:
        return web.Response(status=503, text=f"the configuration is refused: {self._reason}")
