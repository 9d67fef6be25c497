"""Making and taking away what MIG has on a GPU, the note first, so that whatever is found later is known.

`turn` is held by whoever looks at a GPU and then changes it: the label's cutter, and what grants ask.
"""

import asyncio

from lamina.agent.mig.made import Made
from lamina.agent.record import Instance
from lamina.errors import NotYet, Outside
from lamina.model.mig import Placed
from lamina.ports.nvml import GpuFacts, MigInstance, Nvml


def at(gpu: str, there: MigInstance) -> Instance:
    """An instance that is there, by its place."""
    return Instance(gpu=gpu, profile=there.profile, start=there.start)


class Maker:
    """Every call raises Outside where NVML or the disk refuses."""

    def __init__(self, nvml: Nvml, made: Made) -> None:
        self.nvml = nvml
        self.made = made
        self.turn = asyncio.Lock()

    async def facts(self, gpu: str) -> GpuFacts:
        """The GPU as it is at this moment."""
        for facts in await self.nvml.gpus():
            if facts.uuid == gpu:
                return facts
        raise Outside(f"{gpu} does not answer")

    async def create(self, gpu: str, place: Placed) -> MigInstance:
        """Make an instance where nothing is."""
        instance = Instance(gpu=gpu, profile=place.profile, start=place.start)
        self.made.note(instance)
        try:
            return await self.nvml.create_mig(gpu, place)
        except Outside:
            if all((each.profile, each.start) != place for each in await self.nvml.mig_instances(gpu)):
                self.made.forget(instance)
            raise

    async def destroy(self, gpu: str, instance: MigInstance) -> None:
        """Destroy an instance, whole or half made. Whether it is in use or ours is the caller's to know."""
        await self.nvml.destroy_mig(gpu, instance.id)
        self.made.forget(at(gpu, instance))

    async def set_mode(self, facts: GpuFacts, on: bool) -> None:
        """Set the MIG mode. Raises NotYet where it does not come into force now."""
        if on:
            self.made.note_mode(facts.uuid)
        if not await self.nvml.set_mig_mode(facts.uuid, on):
            raise NotYet(f"the MIG mode of GPU {facts.index} is pending: the GPU is in use or has to be reset")
        if not on:
            self.made.forget_mode(facts.uuid)
