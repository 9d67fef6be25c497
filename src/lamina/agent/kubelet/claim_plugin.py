"""Kubelet's calls for claims, the registration of the driver, and the health of the devices that claims may have.

Kubelet finds the driver by a socket in its folder of plugins, and again by itself after each of its restarts. It shows
the health of devices in the status of their pods, and takes it for unknown when nothing was reported for a while, as
when the agent ends. So all are reported again from time to time, and at once when one of them changes.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import grpc

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.resource_claims.dra_devices import DraDevices
from lamina.agent.resource_claims.preparer import ClaimPreparer, ReadyDevice
from lamina.agent.resource_claims.unit import ClaimRef
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.dra.offers import OfferedDevice
from lamina.errors import LaminaError, Outside
from lamina.ports.kubelet import drahealth_pb2 as health
from lamina.ports.kubelet import draplugin_pb2 as messages
from lamina.ports.kubelet import pluginregistration_pb2 as registration
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthServicer
from lamina.ports.kubelet.draplugin_pb2_grpc import DRAPluginServicer
from lamina.ports.kubelet.pluginregistration_pb2_grpc import RegistrationServicer
from lamina.ports.kubelet.servers import HEALTH, REGISTRY_FOLDER, TYPE, VERSIONS, serving_driver
from lamina.ports.polling import RETRY_PAUSES_S, FailureLog

log = logging.getLogger(__name__)

LOOK_S = 0.5
T = TypeVar("T")


class ClaimPlugin(DRAPluginServicer):
    """Each claim of a call has an answer of its own; a failure of one is no failure of the others."""

    def __init__(self, node: NodeContext, preparer: ClaimPreparer) -> None:
        self._node = node
        self._preparer = preparer

    async def NodePrepareResources(
        self, request: messages.NodePrepareResourcesRequest, context: grpc.aio.ServicerContext
    ) -> messages.NodePrepareResourcesResponse:
        response = messages.NodePrepareResourcesResponse()
        for claim in request.claims:
            ref = ClaimRef(claim.namespace, claim.name, claim.uid)
            devices, error = await self._answer(ref, self._preparer.prepare(ref))
            answer = response.claims[claim.uid]
            answer.error = error
            for device in devices or ():
                answer.devices.append(_message(device))
        return response

    async def NodeUnprepareResources(
        self, request: messages.NodeUnprepareResourcesRequest, context: grpc.aio.ServicerContext
    ) -> messages.NodeUnprepareResourcesResponse:
        response = messages.NodeUnprepareResourcesResponse()
        left = [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
        for ref in (*left, *reversed(left)):  # some can go only after others
            if ref.uid not in response.claims or response.claims[ref.uid].error:
                _, response.claims[ref.uid].error = await self._answer(ref, self._preparer.unprepare(ref))
        return response

    async def _answer(self, ref: ClaimRef, work: Awaitable[T]) -> tuple[T | None, str]:
        """The result, or why there is none, which kubelet shows before it asks again."""
        try:
            return await work, ""
        except LaminaError as error:
            log.warning("Claim %s cannot be served yet: %s", ref, error)
            return None, f"Lamina: {error}"
        except Exception as error:
            self._node.aside.add("claim", str(ref), error)
            return None, f"Lamina: {error or type(error).__name__}; see the agent's log"


def _message(ready: ReadyDevice) -> messages.Device:
    device = ready.device
    return messages.Device(
        request_names=[device.request],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=ready.cdi_devices,
        share_id=device.share_id or None,
    )


class ClaimRegistration(RegistrationServicer):
    """Serves the driver where kubelet looks for it, and serves it again when its socket is gone."""

    def __init__(self, node: NodeContext, plugin: ClaimPlugin, health: DRAResourceHealthServicer) -> None:
        self._node = node
        self._plugin = plugin
        self._health = health
        self._driver = node.settings.dra_driver
        self._socket = node.settings.kubelet_dir / REGISTRY_FOLDER / f"lamina-{self._driver}.sock"
        self._failures = FailureLog(log, f"Cannot serve the driver {self._driver}: %s", pauses_s=RETRY_PAUSES_S)

    async def run(self) -> None:
        while True:
            try:
                async with serving_driver(self._plugin, self._health, self, self._socket):
                    self._failures.succeeded()
                    await self._until_gone()
            except Outside as error:
                await self._node.clock.sleep(self._failures.failed(error))

    async def _until_gone(self) -> None:
        own = self._node.files.identity(self._socket)
        while self._node.files.identity(self._socket) == own:
            await self._node.clock.sleep(LOOK_S)
        log.warning("The socket of the driver %s is gone; serving another one", self._driver)

    async def GetInfo(
        self, request: registration.InfoRequest, context: grpc.aio.ServicerContext
    ) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=TYPE,
            name=self._driver,
            endpoint=str(self._socket),
            supported_versions=[*(f"{version}.{TYPE}" for version in VERSIONS), HEALTH],
        )

    async def NotifyRegistrationStatus(
        self, request: registration.RegistrationStatus, context: grpc.aio.ServicerContext
    ) -> registration.RegistrationStatusResponse:
        if request.plugin_registered:
            log.info("Kubelet has registered the driver %s", self._driver)
        else:
            log.error("Kubelet refused the driver %s: %s", self._driver, request.error)
        return registration.RegistrationStatusResponse()


HEALTH_S = 1.0
REPEAT_S = 10.0
TIMEOUT_S = 30
"""After so long without news of a device kubelet does not know its health."""
_MAX_MESSAGE = 1024


class DeviceState(NamedTuple):
    """`reason` says why a device is unhealthy; empty while it is healthy."""

    device: str
    reason: str


def device_states(devices: Iterable[OfferedDevice], gpus: Mapping[str, ObservedGpu]) -> tuple[DeviceState, ...]:
    """By name: the order in which devices are offered changes with their use. `gpus` are those of the node by UUID."""
    found = [DeviceState(each.name, gpus[each.gpu].reason) for each in devices if each.gpu in gpus]
    return tuple(sorted(found))


class ClaimHealth(DRAResourceHealthServicer):
    """Each call is a stream that ends with its caller."""

    def __init__(self, node: NodeContext, offer: DraDevices, offers: NodeOfferStore) -> None:
        self._node = node
        self._offer = offer
        self._offers = offers

    async def NodeWatchResources(
        self, request: health.NodeWatchResourcesRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        reported: tuple[DeviceState, ...] | None = None
        at = 0.0
        while True:
            now = self._node.clock.monotonic()
            states = device_states(self._offer.devices, self._offers.gpus)
            if states != reported or now - at >= REPEAT_S:
                reported, at = states, now
                yield self._message(states)
            await self._node.clock.sleep(HEALTH_S)

    def _message(self, states: Iterable[DeviceState]) -> health.NodeWatchResourcesResponse:
        return health.NodeWatchResourcesResponse(
            devices=[
                health.DeviceHealth(
                    device=health.DeviceIdentifier(pool_name=self._node.node, device_name=each.device),
                    health=health.UNHEALTHY if each.reason else health.HEALTHY,
                    last_updated_time=int(self._node.clock.wall()),
                    health_check_timeout_seconds=TIMEOUT_S,
                    message=each.reason[:_MAX_MESSAGE],
                )
                for each in states
            ]
        )
