"""The device plugin of one MIG resource: kubelet's ids are the UUIDs of MIG devices, and no grant is needed.

As with tickets, Allocate never refuses, since that would be final; what is wrong is said before the container starts.
"""

from collections.abc import Callable

import grpc

from lamina.agent import cdi
from lamina.agent.current import Current
from lamina.agent.device_stream import DeviceStream
from lamina.agent.mig.specs import KIND, Specs, name_of
from lamina.agent.tickets import Ticket
from lamina.errors import Outside
from lamina.ports.kubelet import deviceplugin_pb2 as messages


class MigPlugin(DeviceStream):
    """One resource's plugin. `exists` says whether a MIG device is there at this moment."""

    def __init__(
        self, resource: str, devices: Current[tuple[Ticket, ...]], specs: Specs, exists: Callable[[str], bool]
    ) -> None:
        super().__init__(resource, devices)
        self._specs = specs
        self._exists = exists

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
