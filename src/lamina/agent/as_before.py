"""Containers that hold devices which their node gives out no more, since its configuration is another one by now."""

from collections.abc import Iterable

from lamina.agent import cdi
from lamina.agent.offer import Offer
from lamina.agent.plan import Places, Plan
from lamina.agent.record import Record, Tickets
from lamina.errors import NotYet
from lamina.model.gpus import Mode
from lamina.ports.files import Files


class AsBefore:
    """They may start again as they were; nothing is made for them anew."""

    def __init__(self, resource: str, record: Record, offer: Offer, places: Places, files: Files) -> None:
        self._resource = resource
        self._record = record
        self._offer = offer
        self._places = places
        self._files = files

    def knows(self, devices: Tickets) -> bool:
        """Whether all that the containers with these devices need was made before."""
        known = self._record.of(devices, self._resource)
        specs = [self._files.read(self._places.cdi / cdi.file_name(each.name)) for each in known if each.bound]
        return bool(known) and len(specs) == len(known) and None not in specs

    async def prepare(self, ids: Iterable[str]) -> Plan:
        """Raises NotYet for devices for which nothing was made before, or whose daemon of MPS is not ready: without it
        a program would run without its limits."""
        devices = frozenset(ids)
        if not self.knows(devices):
            raise NotYet("the node gives out these devices no more; make the pod anew")
        for bound in (each.bound for each in self._record.of(devices, self._resource) if each.bound is not None):
            for gpu in bound.gpus if bound.mode is Mode.MPS else ():
                daemon = self._offer.daemon(gpu)
                if daemon is None or not daemon.ready:
                    raise NotYet(f"the container was a client of MPS on {gpu}, whose daemon is not ready")
        return Plan({}, {}, {})
