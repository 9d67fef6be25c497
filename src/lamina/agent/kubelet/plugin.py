"""A device plugin as kubelet calls it, for one resource.

It reports its options, and its devices for as long as kubelet watches. Allocate answers with a CDI name for each
container. For tickets it never refuses, because an error there is final for the pod; whatever can be wrong is found in
PreStartContainer, whose error kubelet shows in the pod's status before it asks again. For native devices it refuses
what NVIDIA's plugin refuses.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import NoReturn, Protocol

import grpc

from lamina.agent.containers import cdi
from lamina.agent.devices.native_devices import all_native
from lamina.agent.devices.tickets import KubeletDevice
from lamina.agent.state.observed import Observable
from lamina.agent.state.record import Record
from lamina.errors import LaminaError, NotYet
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer
from lamina.ports.set_aside import SetAside

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


class Preparer(Protocol):
    async def prepare(self, ids: list[str]) -> None:
        """Make what the container with these devices needs. Raises LaminaError if it cannot start."""
        ...


class NoTickets:
    """Prepares nothing, because the node has no such devices."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def prepare(self, ids: list[str]) -> None:
        raise NotYet(self._reason)


class AllocationPolicy:
    """How devices are chosen and what a container with them gets. These are the rules for tickets."""

    prefers = False

    def refusal(self, ids: Sequence[str]) -> str:
        """Why these cannot be allocated to one container; empty if they can."""
        return ""

    def fill(self, response: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        """Add what a container with these gets in addition to its CDI device."""

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        """Which `size` of those available a container should get, including the required ones."""
        return list(required)


class ResourcePlugin(DeviceStream):
    """After a change of configuration a container may have devices of the other kind, so both are prepared: tickets by
    `tickets` and native devices by `native`."""

    def __init__(
        self,
        resource: str,
        offered: Observable[tuple[KubeletDevice, ...]],
        record: Record,
        *,
        tickets: Preparer,
        native: Preparer,
        aside: SetAside,
        policy: AllocationPolicy | None = None,
    ) -> None:
        super().__init__(resource, offered)
        self._record = record
        self._aside = aside
        self._tickets = tickets
        self._native = native
        self._policy = policy or AllocationPolicy()

    @property
    def options(self) -> messages.DevicePluginOptions:
        return messages.DevicePluginOptions(
            pre_start_required=True, get_preferred_allocation_available=self._policy.prefers
        )

    async def GetPreferredAllocation(
        self, request: messages.PreferredAllocationRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreferredAllocationResponse:
        response = messages.PreferredAllocationResponse()
        for container in request.container_requests:
            required = preferred = list(container.must_include_deviceIDs)
            with self._aside.around("preference", self._resource):
                preferred = self._policy.preferred(
                    list(container.available_deviceIDs), required, container.allocation_size
                )
            response.container_responses.add(deviceIDs=preferred)
        return response

    async def Allocate(
        self, request: messages.AllocateRequest, context: grpc.aio.ServicerContext
    ) -> messages.AllocateResponse:
        requested = [list(container.devices_ids) for container in request.container_requests]
        try:
            refusal = next((reason for ids in requested if (reason := self._policy.refusal(ids))), "")
            response = messages.AllocateResponse() if refusal else self._allocated(requested)
        except LaminaError as error:
            log.error("Cannot record an allocation: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except Exception as error:
            await self._abort("allocation", [id for ids in requested for id in ids], error, context)
        if refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, refusal)
        return response

    def _allocated(self, requested: Sequence[Sequence[str]]) -> messages.AllocateResponse:
        allocations = self._record.allocate(requested, self._resource)
        response = messages.AllocateResponse()
        for allocation, ids in zip(allocations, requested, strict=True):
            container = response.container_responses.add()
            container.cdi_devices.add(name=cdi.device_name(allocation.name))
            key, value = cdi.annotation(allocation.name)
            container.annotations[key] = value
            self._policy.fill(container, ids)
        return response

    async def PreStartContainer(
        self, request: messages.PreStartContainerRequest, context: grpc.aio.ServicerContext
    ) -> messages.PreStartContainerResponse:
        ids = list(request.devices_ids)
        preparer = self._native if all_native(ids) else self._tickets
        try:
            await preparer.prepare(ids)
        except NotYet as error:
            log.warning("A container cannot start yet: %s", error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Lamina: {error}")
        except LaminaError as error:
            log.error("Cannot prepare a container: %s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"Lamina: {error}")
        except Exception as error:
            await self._abort("container", ids, error, context)
        return messages.PreStartContainerResponse()

    async def _abort(
        self, kind: str, ids: Sequence[str], error: Exception, context: grpc.aio.ServicerContext
    ) -> NoReturn:
        """Answer a call that failed unexpectedly. The container does not start, and kubelet shows why."""
        self._aside.add(kind, f"{self._resource} {', '.join(sorted(ids))}", error)
        await context.abort(grpc.StatusCode.INTERNAL, f"Lamina: {error or type(error).__name__}; see the agent's log")
        raise AssertionError("a call that is aborted has ended")
