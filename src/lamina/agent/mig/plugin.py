"""The device plugin of one MIG resource: kubelet's ids are the UUIDs of MIG devices, and no grant is needed.

As with tickets, Allocate never refuses, since that would be final; what is wrong is said before the container starts.
"""

from collections.abc import AsyncIterator, Callable

import grpc

from lamina.agent import cdi
from lamina.agent.current import Current
from lamina.agent.mig.specs import KIND, Specs, name_of
from lamina.agent.plugin import OPTIONS
from lamina.errors import Outside
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer

Devices = tuple[tuple[str, bool], ...]
"""UUIDs of MIG devices, and whether their GPUs are healthy."""


class MigPlugin(DevicePluginServicer):
    """One resource's plugin. `exists` says whether a MIG device is there at this moment."""

    options = OPTIONS

    def __init__(self, devices: Current[Devices], specs: Specs, exists: Callable[[str], bool]) -> None:
        self._devices = devices
        self._specs = specs
        self._exists = exists
        self._streams = 0
        self._session = 0

    @property
    def followed(self) -> bool:
        """Whether a kubelet follows the devices."""
        return self._streams > 0

    def hang_up(self) -> None:
        """End the streams, which never end by themselves."""
        self._session += 1
        self._devices.again()

    async def GetDevicePluginOptions(
        self, request: messages.Empty, context: grpc.aio.ServicerContext
    ) -> messages.DevicePluginOptions:
        return OPTIONS

    async def ListAndWatch(
        self, request: messages.Empty, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[messages.ListAndWatchResponse]:
        session = self._session
        self._streams += 1
        try:
            version = -1
            while True:
                version, devices = await self._devices.after(version)
                if self._session != session:
                    return
                yield messages.ListAndWatchResponse(
                    devices=[
                        messages.Device(ID=uuid, health="Healthy" if healthy else "Unhealthy")
                        for uuid, healthy in devices
                    ]
                )
        finally:
            self._streams -= 1

    async def Allocate(
        self, request: messages.AllocateRequest, context: grpc.aio.ServicerContext
    ) -> messages.AllocateResponse:
        response = messages.AllocateResponse()
        for wish in request.container_requests:
            container = response.container_responses.add()
            name = name_of(wish.devices_ids)
            container.cdi_devices.add(name=cdi.device(name, KIND))
            key, value = cdi.annotation(name, KIND)
            container.annotations[key] = value
        return response

    async def PreStartContainer(
        self, request: messages.PreStartContainerRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreStartContainerResponse:
        gone = [uuid for uuid in request.devices_ids if not self._exists(uuid)]
        if gone:
            reason = f"Lamina: the MIG device {', '.join(gone)} is not there any more"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, reason)
        try:
            self._specs.write(request.devices_ids)
        except Outside as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"Lamina: {error}")
        return messages.PreStartContainerResponse()
