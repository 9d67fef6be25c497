"""Creates and destroys MIG instances and switches MIG modes, each noted first.

`turn` is held while a GPU is inspected and then changed: by the partitioner, and by instances on demand.
"""

import asyncio

from lamina.agent.mig.ownership import Ownership
from lamina.agent.state.holdings import Instance
from lamina.core.mig import Placed
from lamina.errors import NotYet, Outside
from lamina.ports.nvml import GpuFacts, MigInstanceFacts, Nvml


def instance_at(gpu: str, existing: MigInstanceFacts) -> Instance:
    """The place of an existing instance."""
    return Instance(gpu=gpu, profile=existing.profile, start=existing.start)


class MigMaker:
    """Every call raises Outside when NVML or the disk refuses."""

    def __init__(self, nvml: Nvml, ownership: Ownership) -> None:
        self.nvml = nvml
        self.ownership = ownership
        self.turn = asyncio.Lock()

    async def facts(self, gpu: str) -> GpuFacts:
        """The current state of the GPU."""
        for facts in await self.nvml.gpus():
            if facts.uuid == gpu:
                return facts
        raise Outside(f"{gpu} does not answer NVML")

    async def create(self, gpu: str, place: Placed) -> MigInstanceFacts:
        """Create an instance at a free place."""
        instance = Instance(gpu=gpu, profile=place.profile, start=place.start)
        self.ownership.note(instance)
        try:
            return await self.nvml.create_mig(gpu, place)
        except Outside:
            existing = await self.nvml.mig_instances(gpu)
            if all((other.profile, other.start) != place for other in existing):
                self.ownership.forget(instance)
            raise

    async def destroy(self, gpu: str, instance: MigInstanceFacts) -> None:
        """Destroy an instance, complete or not. The caller knows that it is unused and Lamina's."""
        await self.nvml.destroy_mig(gpu, instance.id)
        self.ownership.forget(instance_at(gpu, instance))

    async def set_mode(self, facts: GpuFacts, enabled: bool) -> None:
        """Enable or disable the MIG mode. Raises NotYet if the change does not take effect now."""
        if enabled:
            self.ownership.note_mode(facts.uuid)
        if not await self.nvml.set_mig_mode(facts.uuid, enabled):
            raise NotYet(f"the MIG mode of GPU {facts.index} is pending: the GPU is in use or must be reset")
        if not enabled:
            self.ownership.forget_mode(facts.uuid)
