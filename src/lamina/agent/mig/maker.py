"""Creates and destroys MIG instances and switches MIG modes, each noted first: Lamina never removes anything else.

An instance is noted on disk before it is created and forgotten when it is gone, so an instance at a noted place is
Lamina's, complete or not. It is identified by GPU, profile and place, because NVML's IDs and UUIDs may change at a
reboot. `turn` is held while a GPU is inspected and then changed: by the node's label, and by instances on demand.
"""

import asyncio
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from lamina.agent.state.holdings import Instance
from lamina.core.mig import Placed
from lamina.errors import NotYet, Outside
from lamina.ports.files import Files
from lamina.ports.nvml import GpuFacts, MigInstanceFacts, Nvml


class OwnedMig(Struct, frozen=True, kw_only=True):
    """`modes` are the GPUs whose MIG mode Lamina enabled; `labelled` those partitioned as the node's label says."""

    instances: frozenset[Instance] = frozenset()
    modes: frozenset[str] = frozenset()
    labelled: frozenset[str] = frozenset()


class Ownership:
    """The notes of one node. When a call returns, the change is on disk; if it raises Outside, nothing changed."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read the notes at `path` if they exist. Raises Outside if they cannot be read."""
        self._path = path
        self._files = files
        self._notes = self._load()

    @property
    def instances(self) -> frozenset[Instance]:
        return self._notes.instances

    @property
    def modes(self) -> frozenset[str]:
        return self._notes.modes

    @property
    def labelled(self) -> frozenset[str]:
        return self._notes.labelled

    @property
    def gpus(self) -> frozenset[str]:
        """Every GPU that has a note."""
        return self.modes | {instance.gpu for instance in self.instances}

    def note(self, instance: Instance) -> None:
        """The instance is about to be created."""
        self._save(structs.replace(self._notes, instances=self.instances | {instance}))

    def note_mode(self, gpu: str) -> None:
        """The MIG mode of the GPU is about to be enabled."""
        self._save(structs.replace(self._notes, modes=self.modes | {gpu}))

    def note_label(self, gpu: str, *, labelled: bool) -> None:
        """From now on the instances of the GPU belong to the node's label, or to grants."""
        changed = self.labelled | {gpu} if labelled else self.labelled - {gpu}
        self._save(structs.replace(self._notes, labelled=changed))

    def forget(self, instance: Instance) -> None:
        """The instance is gone."""
        self._save(structs.replace(self._notes, instances=self.instances - {instance}))

    def forget_mode(self, gpu: str) -> None:
        """The MIG mode of the GPU is disabled."""
        self._save(structs.replace(self._notes, modes=self.modes - {gpu}))

    def _save(self, notes: OwnedMig) -> None:
        if notes != self._notes:
            self._files.write(self._path, msgspec.json.format(msgspec.json.encode(notes, order="sorted"), indent=1))
            self._notes = notes

    def _load(self) -> OwnedMig:
        content = self._files.read(self._path)
        if content is None:
            return OwnedMig()
        try:
            return msgspec.json.decode(content, type=OwnedMig)
        except msgspec.DecodeError as error:
            raise Outside(
                f"cannot read the list of MIG instances that Lamina made, {self._path}: {error}; move the file away "
                "and destroy unused instances by hand"
            ) from error


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
