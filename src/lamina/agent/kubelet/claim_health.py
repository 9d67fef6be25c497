"""Reports to kubelet the health of the devices that claims may have, which it shows in the status of their pods.

Kubelet takes the health of a device for unknown when nothing was reported for a while, as when the agent ends. So all
are reported again from time to time, and at once when one of them changes.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

import grpc

from lamina.agent.claims.offer import ClaimOffer
from lamina.agent.context import NodeContext
from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.dra.offers import OfferedDevice
from lamina.ports.kubelet import drahealth_pb2 as messages
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthServicer

LOOK_S = 1.0
REPEAT_S = 10.0
TIMEOUT_S = 30
"""After so long without news of a device kubelet does not know its health."""
_LONGEST = 1024


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

    def __init__(self, node: NodeContext, offer: ClaimOffer, advertisement: Advertisement) -> None:
        self._node = node
        self._offer = offer
        self._advertisement = advertisement

    async def NodeWatchResources(
        self, request: messages.NodeWatchResourcesRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[messages.NodeWatchResourcesResponse]:
        reported: tuple[DeviceState, ...] | None = None
        at = 0.0
        while True:
            now = self._node.clock.monotonic()
            states = device_states(self._offer.devices, self._advertisement.gpus)
            if states != reported or now - at >= REPEAT_S:
                reported, at = states, now
                yield self._message(states)
            await self._node.clock.sleep(LOOK_S)

    def _message(self, states: Iterable[DeviceState]) -> messages.NodeWatchResourcesResponse:
        return messages.NodeWatchResourcesResponse(
            devices=[
                messages.DeviceHealth(
                    device=messages.DeviceIdentifier(pool_name=self._node.node, device_name=each.device),
                    health=messages.UNHEALTHY if each.reason else messages.HEALTHY,
                    last_updated_time=int(self._node.clock.wall()),
                    health_check_timeout_seconds=TIMEOUT_S,
                    message=each.reason[:_LONGEST],
                )
                for each in states
            ]
        )
