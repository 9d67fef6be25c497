"""What Lamina made of MIG on this node: instances, and MIG modes that it turned on. Nothing else is ever taken away.

An instance is noted before it is made, and forgotten when it is gone, so one that lies where a note says so is ours,
half made or whole. It is known by its GPU, profile and place: NVML's ids and UUIDs may be others after a reboot.
"""

from pathlib import Path

import msgspec
from msgspec import Struct, structs

from lamina.agent.record import Instance
from lamina.errors import Outside
from lamina.ports.files import Files


class Notes(Struct, frozen=True, kw_only=True):
    """`modes` are the GPUs whose MIG mode was turned on, `labelled` those that were cut as the node's label says."""

    instances: frozenset[Instance] = frozenset()
    modes: frozenset[str] = frozenset()
    labelled: frozenset[str] = frozenset()


class Made:
    """The notes of one node. Each change is on the disk when the call returns, or has not happened: raises Outside."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read the notes at `path`, if there are any. Raises Outside where they cannot be understood."""
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
        """Every GPU of which there is a note."""
        return self.modes | {each.gpu for each in self.instances}

    def note(self, instance: Instance) -> None:
        """The instance is about to be made."""
        self._save(structs.replace(self._notes, instances=self.instances | {instance}))

    def note_mode(self, gpu: str) -> None:
        """The MIG mode of the GPU is about to be turned on."""
        self._save(structs.replace(self._notes, modes=self.modes | {gpu}))

    def note_label(self, gpu: str, *, labelled: bool) -> None:
        """What is on the GPU belongs to the node's label from now on, or to grants."""
        changed = self.labelled | {gpu} if labelled else self.labelled - {gpu}
        self._save(structs.replace(self._notes, labelled=changed))

    def forget(self, instance: Instance) -> None:
        """The instance is gone."""
        self._save(structs.replace(self._notes, instances=self.instances - {instance}))

    def forget_mode(self, gpu: str) -> None:
        """The MIG mode of the GPU is off."""
        self._save(structs.replace(self._notes, modes=self.modes - {gpu}))

    def _save(self, notes: Notes) -> None:
        if notes != self._notes:
            self._files.write(self._path, msgspec.json.format(msgspec.json.encode(notes, order="sorted"), indent=1))
            self._notes = notes

    def _load(self) -> Notes:
        content = self._files.read(self._path)
        if content is None:
            return Notes()
        try:
            return msgspec.json.decode(content, type=Notes)
        except msgspec.DecodeError as error:
            raise Outside(
                f"{self._path} does not tell what was made of MIG ({error}); move it away, and destroy the instances "
                "that nobody needs"
            ) from error
