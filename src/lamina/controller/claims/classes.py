"""Makes the DeviceClasses that the cluster lacks, and makes them again when they are deleted.

An existing class may belong to NVIDIA's driver on other nodes or to an administrator, so it is left as it is; `lamina
doctor` names one that differs. Agents make none: a class decides for the whole cluster which devices pods get.
"""

import logging
from collections.abc import Callable

from lamina.controller.context import Context
from lamina.dra.names import device_classes
from lamina.ports.kube import DEVICE_CLASSES, AlreadyExists
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

EVERY_S = 60.0


class ClassMaker:
    """Those of one driver. Only a replica that leads (`leading`) writes."""

    def __init__(self, context: Context, driver: str, leading: Callable[[], bool]) -> None:
        self._kube, self._clock = context.kube, context.clock
        self._wanted = device_classes(driver)
        self._leading = leading
        self._next = float("-inf")

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot make DeviceClasses: %s")
        await poll(self.step, self._clock, every_s=1.0, retry_s=10.0, failures=failures)

    async def step(self) -> None:
        """Make the classes that are missing, if it is time to look. Raises Outside."""
        now = self._clock.monotonic()
        if not self._leading() or now < self._next:
            return
        for wanted in self._wanted:
            try:
                await self._kube.create(DEVICE_CLASSES, wanted)
            except AlreadyExists:
                continue
            log.info("Made the DeviceClass %s", wanted["metadata"]["name"])
        self._next = now + EVERY_S
