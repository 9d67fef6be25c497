"""A device plugin as kubelet calls it, for one resource.

It reports its options, and its devices for as long as kubelet watches. Allocate answers with a CDI name for each
container. For tickets it never refuses, because an error there is final for the pod; whatever can be wrong is found in
PreStartContainer, whose error kubelet shows in the pod's status before it asks again. For native devices it refuses
what NVIDIA's plugin refuses.

Replicas are chosen one at a time: first from the GPU of which the container has fewest, so that no container gets two
replicas of a GPU while another GPU has one left; among those from the GPU with the fewest replicas allocated
(distributed) or the most (packed). NVIDIA's packed policy has only the second rule, and gives a container that requests
two replicas the same GPU twice. Whole GPUs are chosen together: the set with the best connections between its members.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import combinations
from typing import NoReturn, Protocol

import grpc

from lamina.agent.containers import cdi
from lamina.agent.inventory.native_devices import NativeKind, all_native, invalid_request, unit_uuid
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.tickets import KubeletDevice
from lamina.agent.prepare.allocate_response import assigned_devices, fill_response, missing_channel
from lamina.agent.state.observed import Observable
from lamina.agent.state.record import Record
from lamina.configuration.nvidia import NvidiaConfig
from lamina.errors import LaminaError, NotYet
from lamina.ports.host import Host
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


PACKED = "packed"
_MAX_SETS = 200_000
"""How many sets of whole GPUs are compared at most; no existing node needs more."""


def prefer_replicas(
    available: Sequence[str], required: Sequence[str], size: int, every: Sequence[str], policy: str
) -> list[str]:
    """`size` replicas, the required ones first. `every` has all replicas of the resource."""
    total = Counter(map(unit_uuid, every))
    free: dict[str, list[str]] = {}
    for device in available:
        if device not in required:
            free.setdefault(unit_uuid(device), []).append(device)
    left = Counter(map(unit_uuid, available))
    allocated = {unit: total[unit] - left[unit] for unit in free}
    own = Counter(map(unit_uuid, required))
    chosen = list(required)
    order = list(free)
    while len(chosen) < size and free:
        sign = -1 if policy == PACKED else 1
        unit = min(free, key=lambda gpu: (own[gpu], sign * allocated[gpu], order.index(gpu)))
        chosen.append(free[unit].pop(0))
        own[unit] += 1
        allocated[unit] += 1
        if not free[unit]:
            del free[unit]
    return chosen


def prefer_connected(
    available: Sequence[str], required: Sequence[str], size: int, links: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """`size` whole GPUs with the highest sum of link scores between them; `links` has scores by both UUIDs."""
    fixed = list(required)
    rest = [device for device in available if device not in fixed]
    best, best_score = rest[: size - len(fixed)], -1
    for number, added in enumerate(combinations(rest, max(0, size - len(fixed)))):
        score = sum(links.get(a, {}).get(b, 0) for a, b in combinations([*fixed, *added], 2))
        if score > best_score:
            best, best_score = list(added), score
        if number >= _MAX_SETS:
            break
    return [*fixed, *best]


class NativeAllocationPolicy(AllocationPolicy):
    """For the devices of one kind, which are among the `offered`, by NVIDIA's configuration."""

    prefers = True

    def __init__(
        self,
        kind: NativeKind,
        config: NvidiaConfig,
        offered: Observable[tuple[KubeletDevice, ...]],
        offers: NodeOfferStore,
        host: Host,
    ) -> None:
        self._kind = kind
        self._offered = offered
        self._config = config
        self._offers = offers
        self._host = host

    def refusal(self, ids: Sequence[str]) -> str:
        one_at_most = self._config.sharing.one_at_most
        reason = invalid_request(self._kind, ids, one_at_most=one_at_most)
        return reason or missing_channel(self._config, self._host)

    def fill(self, response: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        units = list(dict.fromkeys(map(unit_uuid, ids)))
        state = self._offers.state
        assigned = assigned_devices(units, state.gpus, state.mig_devices)
        fill_response(response, assigned, self._config, self._host)

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        if self._kind.replicated:
            every = [device.id for device in self._offered.value]
            return prefer_replicas(available, required, size, every, self._config.allocation)
        links = {uuid: gpu.facts.links for uuid, gpu in self._offers.gpus.items()}
        return prefer_connected(available, required, size, links)
