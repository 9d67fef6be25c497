"""Keep kubelet knowing about the plugin, whatever happens to either.

A kubelet that restarts empties its folder of sockets and forgets all plugins. So the plugin serves a socket, registers,
and looks whether kubelet's socket is still the same, its own is still there, and kubelet still follows its tickets;
when not, it begins anew. Until then the node has no allocatable GPUs, so it looks often.

Another plugin for the same resource takes its place, for kubelet follows the one that registered last. Older kubelets
go on listening to both, so what the node says that it counts is looked at as well.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lamina.agent.device_stream import DeviceStream
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kubelet.registration import KUBELET_SOCKET, register
from lamina.ports.kubelet.serving import serving

log = logging.getLogger(__name__)

LOOK_S = 0.5
UNFOLLOWED_S = 10.0
"""How long kubelet may leave the tickets unfollowed; it opens its stream right after the registration."""
MISCOUNTED_S = 30.0
"""How long the node may say another number than kubelet was told; it says so every ten seconds."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


class Offered(Protocol):
    """What a plugin is for."""

    @property
    def resource(self) -> str: ...

    @property
    def endpoint(self) -> str: ...


class Registration:
    """Serves a plugin in kubelet's folder of plugins, for one kind of devices."""

    def __init__(
        self,
        plugin: DeviceStream,
        folder: Path,
        kind: Offered,
        *,
        files: Files,
        clock: Clock,
        counted: Callable[[], int | None] = lambda: None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        """`counted` is how many devices the node says that kubelet counts, None where it says nothing."""
        self._plugin = plugin
        self._folder = folder
        self._kind = kind
        self._files = files
        self._clock = clock
        self._counted = counted
        self._pauses = pauses
        self._failures = 0

    async def keep(self) -> None:
        """Be registered, for ever."""
        while True:
            try:
                await self._once()
            except Outside as error:
                if self._failures in (0, 10) or self._failures % 100 == 0:
                    log.warning("The plugin is not registered: %s", error)
                pause = self._pauses[min(self._failures, len(self._pauses) - 1)]
                self._failures += 1
                await self._clock.sleep(pause)

    async def _once(self) -> None:
        socket = self._folder / self._kind.endpoint
        async with serving(self._plugin, socket):
            try:
                reason = await self._while_registered(socket)
            finally:
                self._plugin.hang_up()
        log.warning("Registering %s again: %s", self._kind.resource, reason)

    async def _while_registered(self, socket: Path) -> str:
        """Register, and wait until that does not hold any more; why. Raises Outside when kubelet refuses."""
        kubelet, own = self._files.identity(self._folder / KUBELET_SOCKET), self._files.identity(socket)
        await register(
            self._folder, endpoint=self._kind.endpoint, resource=self._kind.resource, options=self._plugin.options
        )
        log.info("Registered %s with kubelet", self._kind.resource)
        self._failures = 0
        followed = agreed = self._clock.monotonic()
        while True:
            await self._clock.sleep(LOOK_S)
            if self._plugin.followed:
                followed = self._clock.monotonic()
            if (counted := self._counted()) in (None, self._plugin.told):
                agreed = self._clock.monotonic()
            now = self._files.identity(self._folder / KUBELET_SOCKET)
            if now is not None and now != kubelet:
                return "kubelet has a new socket"
            if self._files.identity(socket) != own:
                return "the plugin's socket is gone"
            if now is not None and self._clock.monotonic() - followed > UNFOLLOWED_S:
                return "kubelet does not follow its tickets"
            if now is not None and self._clock.monotonic() - agreed > MISCOUNTED_S:
                return f"kubelet was told {self._plugin.told} and counts {counted}, as if another plugin had come"
