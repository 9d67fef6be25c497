"""Look at the GPUs again and again, and tell the offer what they are."""

import logging

from lamina.agent.health import HealthBook
from lamina.agent.offer import Offer
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)


class Monitor:
    """Keeps an offer true. Nothing is raised: what NVML does not tell is a reason why GPUs are not healthy."""

    def __init__(self, nvml: Nvml, offer: Offer, clock: Clock, *, poll_s: float) -> None:
        self._nvml = nvml
        self._offer = offer
        self._clock = clock
        self._poll_s = poll_s
        self._book = HealthBook()
        self._driver = ""
        self._told: dict[str, str] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await self.listen()

    async def look(self) -> None:
        """Ask NVML for the GPUs."""
        try:
            self._driver = await self._nvml.driver_version()
            self._book.answered(await self._nvml.gpus(), self._clock.monotonic())
        except Outside as error:
            self._book.silent(str(error))
        self._tell()

    async def listen(self) -> None:
        """Wait for an error that the driver reports, at most until it is time to look again."""
        try:
            event = await self._nvml.wait_event(self._poll_s)
        except Outside:
            await self._clock.sleep(self._poll_s)
            return
        if event is not None and self._book.struck(event, self._clock.monotonic()):
            self._tell()

    def _tell(self) -> None:
        states = self._book.states()
        reasons = {state.facts.uuid: state.reason for state in states}
        for uuid, reason in reasons.items():
            if reason != self._told.get(uuid, ""):
                log.warning("%s is not healthy: %s", uuid, reason) if reason else log.info("%s is healthy again", uuid)
        self._told = reasons
        self._offer.observed(self._driver, states)
