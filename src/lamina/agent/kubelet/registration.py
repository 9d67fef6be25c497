"""Keeps a device plugin registered with kubelet, whatever happens to either.

A kubelet that restarts empties its directory of sockets and forgets all plugins. So the plugin serves a socket,
registers, and checks that kubelet's socket is still the same, that its own still exists, and that kubelet still watches
its devices; if not, it starts over. Until then the node has no allocatable GPUs, so it checks often.

Another plugin for the same resource replaces this one, because kubelet uses the plugin that registered last. Older
kubelets keep watching both, so the count in the node's status is compared too.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lamina.agent.kubelet.plugin import DeviceStream
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kubelet.servers import KUBELET_SOCKET, register, serving
from lamina.ports.polling import RETRY_PAUSES_S, FailureLog

log = logging.getLogger(__name__)

LOOK_S = 0.5
UNWATCHED_S = 10.0
"""How long kubelet may leave the devices unwatched; it starts to watch right after the registration."""
MISCOUNTED_S = 30.0
"""How long the node's status may have another count than kubelet was given; kubelet updates it every ten seconds."""


class Endpoint(Protocol):
    """The resource of a plugin, and the name of its socket."""

    @property
    def resource(self) -> str: ...

    @property
    def endpoint(self) -> str: ...


class Registration:
    """Serves a plugin in kubelet's directory of plugins."""

    def __init__(
        self,
        plugin: DeviceStream,
        folder: Path,
        kind: Endpoint,
        *,
        files: Files,
        clock: Clock,
        counted: Callable[[], int | None] = lambda: None,
        pauses_s: tuple[float, ...] = RETRY_PAUSES_S,
    ) -> None:
        """`counted` returns how many devices the node's status has; None if that is not known."""
        self._plugin = plugin
        self._folder = folder
        self._kind = kind
        self._files = files
        self._clock = clock
        self._counted = counted
        self._failures = FailureLog(log, f"Cannot register the plugin for {kind.resource}: %s", pauses_s=pauses_s)

    async def run(self) -> None:
        """Stay registered forever."""
        while True:
            try:
                await self._serve_once()
            except Outside as error:
                await self._clock.sleep(self._failures.failed(error))

    async def _serve_once(self) -> None:
        socket = self._folder / self._kind.endpoint
        async with serving(self._plugin, socket):
            try:
                reason = await self._while_registered(socket)
            finally:
                self._plugin.end_streams()
        log.warning("Registering %s again: %s", self._kind.resource, reason)

    async def _while_registered(self, socket: Path) -> str:
        """Register, and wait until the registration is lost. Returns why. Raises Outside when kubelet refuses."""
        kubelet, own = self._files.identity(self._folder / KUBELET_SOCKET), self._files.identity(socket)
        await register(
            self._folder, endpoint=self._kind.endpoint, resource=self._kind.resource, options=self._plugin.options
        )
        log.info("Registered %s with kubelet", self._kind.resource)
        self._failures.succeeded()
        watched_at = agreed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(LOOK_S)
            if self._plugin.watched:
                watched_at = self._clock.monotonic()
            counted = self._counted()
            if counted in (None, self._plugin.reported):
                agreed_at = self._clock.monotonic()
            current = self._files.identity(self._folder / KUBELET_SOCKET)
            if current is not None and current != kubelet:
                return "kubelet has a new socket"
            if self._files.identity(socket) != own:
                return "the plugin's socket is gone"
            if current is not None and self._clock.monotonic() - watched_at > UNWATCHED_S:
                return "kubelet does not watch its devices"
            if current is not None and self._clock.monotonic() - agreed_at > MISCOUNTED_S:
                reported = self._plugin.reported
                return f"kubelet was given {reported} devices and counts {counted}; another plugin may have registered"
