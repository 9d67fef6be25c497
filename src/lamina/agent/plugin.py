"""The device plugin as kubelet calls it.

Allocate answers with a CDI name for each container and never refuses: an error there is final for the pod. What can be
wrong is found in PreStartContainer, whose error kubelet shows in the pod's status before it asks again.
"""

import logging
from collections.abc import AsyncIterator
from typing import Protocol

import grpc

from lamina.agent import cdi
from lamina.agent.current import Current
from lamina.agent.plan import Plan
from lamina.agent.record import Record
from lamina.agent.tickets import Ticket
from lamina.errors import LaminaError, NotYet
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer

log = logging.getLogger(__name__)

OPTIONS = messages.DevicePluginOptions(pre_start_required=True)


class Prepares(Protocol):
    async def prepare(self, ids: list[str]) -> Plan: ...


class Plugin(DevicePluginServicer):
    """One resource's plugin."""

    def __init__(self, tickets: Current[tuple[Ticket, ...]], record: Record, preparer: Prepares) -> None:
        self._tickets = tickets
        self._record = record
        self._preparer = preparer
        self._streams = 0
        self._session = 0

    @property
    def followed(self) -> bool:
        """Whether a kubelet follows the tickets."""
        return self._streams > 0

    def hang_up(self) -> None:
        """End the streams, which never end by themselves, so that a server can stop as soon as its calls are done."""
        self._session += 1
        self._tickets.again()

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
                version, tickets = await self._tickets.after(version)
                if self._session != session:
                    return
                log.info("Kubelet is told %d tickets, %d healthy", len(tickets), sum(t.healthy for t in tickets))
                yield messages.ListAndWatchResponse(
                    devices=[
                        messages.Device(ID=ticket.id, health="Healthy" if ticket.healthy else "Unhealthy")
                        for ticket in tickets
                    ]
                )
        finally:
            self._streams -= 1

    async def Allocate(
        self, request: messages.AllocateRequest, context: grpc.aio.ServicerContext
    ) -> messages.AllocateResponse:
        try:
            fresh = self._record.allocate([container.devices_ids for container in request.container_requests])
        except LaminaError as error:
            log.error("Tickets could not be recorded: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        response = messages.AllocateResponse()
        for allocation in fresh:
            container = response.container_responses.add()
            container.cdi_devices.add(name=cdi.device(allocation.name))
            key, value = cdi.annotation(allocation.name)
            container.annotations[key] = value
        return response

    async def PreStartContainer(
        self, request: messages.PreStartContainerRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreStartContainerResponse:
        try:
            await self._preparer.prepare(list(request.devices_ids))
        except NotYet as error:
            log.warning("A container does not start yet: %s", error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Lamina: {error}")
        except LaminaError as error:
            log.error("A container could not be prepared: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"Lamina: {error}")
        return messages.PreStartContainerResponse()
