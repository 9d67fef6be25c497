"""What every device plugin tells kubelet: its options, and which devices there are for as long as kubelet listens."""

import logging
from collections.abc import AsyncIterator

import grpc

from lamina.agent.current import Current
from lamina.agent.tickets import Ticket
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer

log = logging.getLogger(__name__)

OPTIONS = messages.DevicePluginOptions(pre_start_required=True)
"""Of a plugin that leaves the choice of devices to kubelet."""


class DeviceStream(DevicePluginServicer):
    """One resource's devices, each by id and whether it is healthy."""

    def __init__(self, resource: str, offered: Current[tuple[Ticket, ...]]) -> None:
        self._resource = resource
        self._offered = offered
        self._streams = 0
        self._session = 0
        self.told: int | None = None
        """How many healthy devices kubelet was told of last."""

    @property
    def options(self) -> messages.DevicePluginOptions:
        return OPTIONS

    @property
    def followed(self) -> bool:
        """Whether a kubelet follows the devices."""
        return self._streams > 0

    def hang_up(self) -> None:
        """End the streams, which never end by themselves, so that a server can stop as soon as its calls are done."""
        self._session += 1
        self._offered.again()

    async def GetDevicePluginOptions(
        self, request: messages.Empty, context: grpc.aio.ServicerContext
    ) -> messages.DevicePluginOptions:
        return self.options

    async def ListAndWatch(
        self, request: messages.Empty, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[messages.ListAndWatchResponse]:
        session = self._session
        self._streams += 1
        try:
            version = -1
            while True:
                version, offered = await self._offered.after(version)
                if self._session != session:
                    return
                healthy = sum(each.healthy for each in offered)
                self.told = healthy
                log.info("Kubelet is told %d of %s, %d healthy", len(offered), self._resource, healthy)
                yield messages.ListAndWatchResponse(
                    devices=[
                        messages.Device(ID=each.id, health="Healthy" if each.healthy else "Unhealthy")
                        for each in offered
                    ]
                )
        finally:
            self._streams -= 1
