"""NVML's answers about GPUs and their errors, without what cannot be used.

A GPU that cannot be described in an Inventory is set aside, and counts as one that does not answer; the others are
listed. An unexpected failure is one of NVML.
"""

from collections.abc import Awaitable
from typing import TypeVar

from lamina.agent.inventory.builder import build_inventory
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration import NodeSettings
from lamina.core.objects import read_inventory, write_spec
from lamina.errors import Outside
from lamina.ports.nvml import GpuFacts, Nvml, XidEvent
from lamina.ports.set_aside import SetAside

T = TypeVar("T")
_GPU, _ANSWER = "GPU", "answer of NVML"


class CheckedNvml:
    """Every call raises Outside."""

    def __init__(self, nvml: Nvml, settings: NodeSettings, aside: SetAside) -> None:
        self._nvml = nvml
        self._settings = settings
        self._aside = aside

    async def driver_version(self) -> str:
        return await self._checked("driver version", self._nvml.driver_version())

    async def gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that answer and can be described."""
        found = await self._checked("GPUs", self._nvml.gpus())
        return tuple(facts for facts in found if self._is_usable(facts))

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        """The next error that the driver reports, or None if there is none in time."""
        return await self._checked("events", self._nvml.wait_event(timeout_s))

    async def _checked(self, what: str, answer: Awaitable[T]) -> T:
        try:
            checked = await answer
        except Outside:
            raise
        except Exception as error:
            self._aside.add(_ANSWER, what, error)
            raise Outside(f"the answer of NVML cannot be used: {error}") from error
        self._aside.forget(_ANSWER, what)
        return checked

    def _is_usable(self, facts: GpuFacts) -> bool:
        try:
            check_describable(facts, self._settings)
        except Exception as error:
            self._aside.add(_GPU, facts.uuid, error)
            return False
        self._aside.forget(_GPU, facts.uuid)
        return True


def check_describable(facts: GpuFacts, settings: NodeSettings) -> None:
    """Raises BadInput for a GPU with which the API server and the controller would refuse the whole Inventory."""
    inventory = build_inventory("node", "", (ObservedGpu(facts),), settings)
    read_inventory({"metadata": {"name": "node"}, "spec": write_spec(inventory)})
