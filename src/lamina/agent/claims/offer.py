"""What claims may get of the node: its devices, and those that containers do not have by another door."""

from collections.abc import Mapping

from lamina.agent.context import NodeContext
from lamina.agent.devices.usage_by_gpu import DevicesInUse, devices_in_use
from lamina.agent.inventory.advertisement import Advertisement
from lamina.dra.offers import DriverVersions, OfferedDevice, OfferedGpu, offered_devices
from lamina.errors import Outside


class ClaimOffer:
    """The devices of one node. What NVML tells of a GPU once and for all is asked when it is first seen."""

    def __init__(self, node: NodeContext, advertisement: Advertisement) -> None:
        self._node = node
        self._advertisement = advertisement
        self._bus_ids: Mapping[str, str] = {}
        self._versions = DriverVersions()

    async def look(self) -> None:
        """Ask NVML about new GPUs or another driver. Raises Outside."""
        state = self._advertisement.state
        if (state.driver or "") != self._versions.driver:
            cuda = await self._node.nvml.cuda_version()
            self._versions = DriverVersions(state.driver or "", cuda)
        if not self._bus_ids.keys() >= state.gpus.keys():
            readings = await self._node.nvml.readings()
            self._bus_ids = dict.fromkeys(state.gpus, "") | {uuid: each.bus_id for uuid, each in readings.items()}

    @property
    def known(self) -> bool:
        """Whether all that decides the offer has been asked."""
        state = self._advertisement.state
        return bool(state.driver) and None not in (state.cordoned, state.labelled, state.on_demand)

    @property
    def devices(self) -> list[OfferedDevice]:
        """All devices that the configuration lets claims have, in use or not, in their order."""
        state = self._advertisement.state
        mig = state.mig_devices
        gpus = [
            OfferedGpu(
                facts=gpu.facts,
                bus_id=self._bus_ids.get(uuid, ""),
                reason=gpu.reason,
                mig=tuple(device for device in mig if device.gpu == uuid),
            )
            for uuid, gpu in state.gpus.items()
            if state.selected and state.settings.offers(uuid, gpu.facts.index)
        ]
        used = self._node.claims.units.keys()
        parents = {device.gpu for device in mig if device.uuid in used}
        return offered_devices(gpus, self._versions, {*used, *parents}, self._node.settings.dra_driver)

    @property
    def free(self) -> list[OfferedDevice]:
        """Those that no container has by another door, that are not cordoned, and that no MPS daemon has."""
        state = self._advertisement.state
        taken = self.others.gpus.keys() | state.daemons.keys() | (state.cordoned or frozenset())
        return [device for device in self.devices if not {device.uuid, device.gpu} & taken]

    @property
    def others(self) -> DevicesInUse:
        """What containers have by the device plugins."""
        return devices_in_use(self._node.record.allocations, self._advertisement.state.mode)

    def changed(self) -> None:
        """Let the other doors know what claims hold now."""
        self._advertisement.update()


async def looked(offer: ClaimOffer) -> bool:
    """Ask NVML, and return whether the offer is known. NVML that does not answer leaves it as it was."""
    try:
        await offer.look()
    except Outside:
        return False
    return offer.known
