"""How native devices are chosen, which requests are refused, and what a container gets with them."""

from collections.abc import Sequence

from lamina.agent.devices import preferred_allocation
from lamina.agent.devices.native_devices import NativeKind, invalid_request, unit_uuid
from lamina.agent.devices.tickets import KubeletDevice
from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.kubelet.plugin import AllocationPolicy
from lamina.agent.prepare import allocate_response
from lamina.agent.state.observable import Observable
from lamina.configuration.nvidia import NvidiaConfig
from lamina.ports.host import Host
from lamina.ports.kubelet import deviceplugin_pb2 as messages


class NativeAllocationPolicy(AllocationPolicy):
    """For the devices of one kind, which are among the `offered`, by NVIDIA's configuration."""

    prefers = True

    def __init__(
        self,
        kind: NativeKind,
        config: NvidiaConfig,
        offered: Observable[tuple[KubeletDevice, ...]],
        advertisement: Advertisement,
        host: Host,
    ) -> None:
        self._kind = kind
        self._offered = offered
        self._config = config
        self._advertisement = advertisement
        self._host = host

    def refusal(self, ids: Sequence[str]) -> str:
        one_at_most = self._config.sharing.one_at_most
        reason = invalid_request(self._kind, ids, one_at_most=one_at_most)
        return reason or allocate_response.missing_channel(self._config, self._host)

    def fill(self, response: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        units = list(dict.fromkeys(map(unit_uuid, ids)))
        state = self._advertisement.state
        assigned = allocate_response.assigned_devices(units, state.gpus, state.mig_devices)
        allocate_response.fill_response(response, assigned, self._config, self._host)

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        if self._kind.replicated:
            every = [device.id for device in self._offered.value]
            return preferred_allocation.prefer_replicas(available, required, size, every, self._config.allocation)
        links = {uuid: gpu.facts.links for uuid, gpu in self._advertisement.gpus.items()}
        return preferred_allocation.prefer_connected(available, required, size, links)
