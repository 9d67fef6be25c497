"""What every device plugin reports to kubelet: its options, and its devices for as long as kubelet watches."""

import logging
from collections.abc import AsyncIterator

import grpc

from lamina.agent.devices.tickets import KubeletDevice
from lamina.agent.state.observable import Observable
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer

log = logging.getLogger(__name__)

OPTIONS = messages.DevicePluginOptions(pre_start_required=True)
"""For a plugin that leaves the choice of devices to kubelet."""


class DeviceStream(DevicePluginServicer):
    """The devices of one resource."""

    def __init__(self, resource: str, offered: Observable[tuple[KubeletDevice, ...]]) -> None:
        self._resource = resource
        self._offered = offered
        self._streams = 0
        self._session = 0
        self.reported: int | None = None
        """How many healthy devices were reported to kubelet last."""

    @property
    def options(self) -> messages.DevicePluginOptions:
        return OPTIONS

    @property
    def watched(self) -> bool:
        """Whether a kubelet watches the devices."""
        return self._streams > 0

    def end_streams(self) -> None:
        """Streams never end by themselves; this lets a server stop as soon as its other calls are done."""
        self._session += 1
        self._offered.notify()

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
                version, devices = await self._offered.after(version)
                if self._session != session:
                    return
                healthy = sum(device.healthy for device in devices)
                self.reported = healthy
                log.info("Reporting %s to kubelet: devices: %d, healthy: %d", self._resource, len(devices), healthy)
                yield messages.ListAndWatchResponse(
                    devices=[
                        messages.Device(ID=device.id, health="Healthy" if device.healthy else "Unhealthy")
                        for device in devices
                    ]
                )
        finally:
            self._streams -= 1
