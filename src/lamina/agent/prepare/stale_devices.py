"""Containers with devices that the node no longer advertises, because its configuration changed."""

from collections.abc import Iterable

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import HostPaths
from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.state.holdings import DeviceIds
from lamina.agent.state.record import Record
from lamina.core.gpus import Mode
from lamina.errors import NotYet
from lamina.ports.files import Files


class StaleDevicePreparer:
    """Such containers may restart with the files that they have; nothing new is made for them."""

    def __init__(
        self, resource: str, record: Record, advertisement: Advertisement, paths: HostPaths, files: Files
    ) -> None:
        self._resource = resource
        self._record = record
        self._advertisement = advertisement
        self._paths = paths
        self._files = files

    def is_prepared(self, devices: DeviceIds) -> bool:
        """Whether everything that the containers with these devices need was made before."""
        allocations = self._record.of(devices, self._resource)
        specs = [self._files.read(self._paths.cdi / cdi.file_name(each.name)) for each in allocations if each.bound]
        return bool(allocations) and len(specs) == len(allocations) and None not in specs

    async def prepare(self, ids: Iterable[str]) -> None:
        """Raises NotYet if nothing was made before, or for MPS clients whose daemon is not ready: without it a program
        would run without limits."""
        devices = frozenset(ids)
        if not self.is_prepared(devices):
            raise NotYet("the node no longer advertises these devices; delete and recreate the pod")
        for bound in (each.bound for each in self._record.of(devices, self._resource) if each.bound is not None):
            for gpu in bound.gpus if bound.mode is Mode.MPS else ():
                daemon = self._advertisement.daemon(gpu)
                if daemon is None or not daemon.ready:
                    raise NotYet(f"the container is an MPS client on {gpu}, whose daemon is not ready")
