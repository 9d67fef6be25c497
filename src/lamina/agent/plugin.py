"""A device plugin as kubelet calls it, for one resource.

Allocate answers with a CDI name for each container. For tickets it never refuses: an error there is final for the pod,
and what can be wrong is found in PreStartContainer, whose error kubelet shows in the pod's status before it asks again.
For plain devices it refuses what NVIDIA's plugin refuses.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

import grpc

from lamina.agent import cdi
from lamina.agent.current import Current
from lamina.agent.device_stream import DeviceStream
from lamina.agent.plain import is_plain
from lamina.agent.plan import Plan
from lamina.agent.record import Record
from lamina.agent.tickets import Ticket
from lamina.errors import LaminaError, NotYet
from lamina.ports.kubelet import deviceplugin_pb2 as messages

log = logging.getLogger(__name__)


class Prepares(Protocol):
    async def prepare(self, ids: list[str]) -> Plan: ...


class Nobody:
    """Prepares nothing: the node has no such devices."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def prepare(self, ids: list[str]) -> Plan:
        raise NotYet(self._reason)


class Devices:
    """What the devices of a resource mean to kubelet. This is what tickets mean: nothing that it should know of."""

    prefers = False

    def refusal(self, ids: Sequence[str]) -> str:
        """Why these cannot be allocated to one container, or nothing."""
        return ""

    def fill(self, answer: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        """Add what a container with these gets beside its CDI device."""

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        """Which `size` of those available a container should get, the required ones among them."""
        return list(required)


class Plugin(DeviceStream):
    """One resource's plugin. After a change of configuration a container may hold devices of the other form, so both
    are prepared: `tickets` and `plain`."""

    def __init__(
        self,
        resource: str,
        offered: Current[tuple[Ticket, ...]],
        record: Record,
        *,
        tickets: Prepares,
        plain: Prepares,
        devices: Devices | None = None,
    ) -> None:
        super().__init__(resource, offered)
        self._record = record
        self._tickets = tickets
        self._plain = plain
        self._devices = devices or Devices()

    @property
    def options(self) -> messages.DevicePluginOptions:
        return messages.DevicePluginOptions(
            pre_start_required=True, get_preferred_allocation_available=self._devices.prefers
        )

    async def GetPreferredAllocation(
        self, request: messages.PreferredAllocationRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreferredAllocationResponse:
        response = messages.PreferredAllocationResponse()
        for each in request.container_requests:
            chosen = self._devices.preferred(
                list(each.available_deviceIDs), list(each.must_include_deviceIDs), each.allocation_size
            )
            response.container_responses.add(deviceIDs=chosen)
        return response

    async def Allocate(
        self, request: messages.AllocateRequest, context: grpc.aio.ServicerContext
    ) -> messages.AllocateResponse:
        wanted = [list(container.devices_ids) for container in request.container_requests]
        if refused := next((reason for ids in wanted if (reason := self._devices.refusal(ids))), ""):
            await context.abort(grpc.StatusCode.UNKNOWN, refused)
        try:
            fresh = self._record.allocate(wanted, self._resource)
        except LaminaError as error:
            log.error("An allocation could not be recorded: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        response = messages.AllocateResponse()
        for allocation, ids in zip(fresh, wanted, strict=True):
            container = response.container_responses.add()
            container.cdi_devices.add(name=cdi.device(allocation.name))
            key, value = cdi.annotation(allocation.name)
            container.annotations[key] = value
            self._devices.fill(container, ids)
        return response

    async def PreStartContainer(
        self, request: messages.PreStartContainerRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreStartContainerResponse:
        ids = list(request.devices_ids)
        preparer = self._plain if all(map(is_plain, ids)) else self._tickets
        try:
            await preparer.prepare(ids)
        except NotYet as error:
            log.warning("A container does not start yet: %s", error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Lamina: {error}")
        except LaminaError as error:
            log.error("A container could not be prepared: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"Lamina: {error}")
        return messages.PreStartContainerResponse()
