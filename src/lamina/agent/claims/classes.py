"""The DeviceClasses by which claims ask for the devices of this driver, made where the cluster has none of that name.

An existing class may belong to NVIDIA's driver on other nodes or to an administrator, so it is left as it is.
"""

import logging
from typing import Any

from lamina.agent.context import NodeContext
from lamina.dra.names import DRIVER, HAMI_DRIVER
from lamina.ports.kube import DEVICE_CLASSES, AlreadyExists, Object
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_EVERY_S = 600.0
LABELS = {"app.kubernetes.io/name": "lamina", "app.kubernetes.io/part-of": "lamina"}
"""By these labels `lamina uninstall` finds the classes that agents made."""


def device_classes(driver: str) -> list[Object]:
    """NVIDIA's classes, and the one of HAMi's driver, whose claims get the same devices."""
    mig = f"mig.{driver.partition('.')[2]}"
    return [
        _device_class(driver, driver, "type", "gpu", extendedResourceName=f"{driver.partition('.')[2]}/gpu"),
        _device_class(mig, driver, "type", "mig"),
        *([_device_class(HAMI_DRIVER, driver, "type", "hami-gpu", domain=HAMI_DRIVER)] if driver == DRIVER else []),
    ]


def _device_class(name: str, driver: str, attribute: str, value: str, *, domain: str = "", **more: Any) -> Object:
    own = f"device.attributes['{domain or driver}'].{attribute}"
    expression = f"device.driver == '{driver}' && {own} == '{value}'"
    return {
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **more},
    }


class ClassMaker:
    """Makes the classes at the start, and looks again from time to time."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot make DeviceClasses: %s")
        await poll(self.look, self._node.clock, every_s=_EVERY_S, retry_s=10.0, failures=failures)

    async def look(self) -> None:
        """Make the classes that are missing. Raises Outside."""
        for wanted in device_classes(self._node.settings.dra_driver):
            try:
                await self._node.kube.create(DEVICE_CLASSES, wanted)
            except AlreadyExists:
                continue
            log.info("Made the DeviceClass %s", wanted["metadata"]["name"])
