"""The configuration that a replica begins with.

There is none before it that could stay in force, so while the ConfigMap's is refused the replica waits for another
one. It answers probes, with the reason for whoever looks, and nobody else, and takes no part in who leads. A replica
that began with a valid one goes on by that; where there is none, no pod with GPUs is admitted or placed.
"""

import asyncio
import logging

from aiohttp import web

from lamina.control.configuration import Configuration, read_config_map, read_file, valid_config_map
from lamina.control.settings import ControlSettings
from lamina.errors import BadInput
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.listening import listening

log = logging.getLogger(__name__)


async def begin(
    kube: Kube, settings: ControlSettings, events: EventRecorder, stop: asyncio.Event
) -> Configuration | None:
    """The first valid configuration; None where `stop` was set before there was one.

    Raises BadInput for a file that is refused, which whoever named it has to mend, and Outside.
    """
    if settings.config is not None:
        return await read_file(settings.config)
    try:
        return await read_config_map(kube)
    except BadInput as refused:
        log.error("Nothing is answered until the configuration is mended: %s", refused)
        waiting = Waiting(str(refused))
    async with listening("probes", waiting.application(), settings.metrics or settings.extender):
        mended = asyncio.create_task(valid_config_map(kube, events, waiting.say))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({mended, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return mended.result() if mended.done() else None
        finally:
            mended.cancel()
            stopped.cancel()


class Waiting:
    """What probes are answered meanwhile: that the process is well, and why it is not ready."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def say(self, reason: str) -> None:
        """The configuration is refused for this reason now."""
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
