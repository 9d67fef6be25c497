"""Container Device Interface: names of devices, resolved in specification files, become edits of a container.

A container runtime reads the folders in order; a device that a later folder names again wins over an earlier one, and
a name that two files of one folder give belongs to neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ANNOTATION_PREFIX = "cdi.k8s.io/"


class Unresolvable(Exception):
    """Devices that no specification names; the message is the container runtime's."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"CDI device injection failed: unresolvable CDI devices {', '.join(names)}")
        self.names = tuple(names)


@dataclass(frozen=True, slots=True)
class Mount:
    host_path: str
    container_path: str


@dataclass(frozen=True, slots=True)
class Edits:
    """What devices add to a container: variables, the last one of a name counting, and mounts."""

    env: Mapping[str, str]
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """One file: edits of each device by its full name, with the file's common edits in front."""

    common: Mapping[str, Any]
    devices: Mapping[str, Mapping[str, Any]]


def parse(document: object) -> Spec:
    """The specification in a decoded file. Raises ValueError where it is none."""
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise ValueError("not a CDI specification")
    entries = document.get("devices") or ()
    devices = {f"{document['kind']}={entry['name']}": entry.get("containerEdits") or {} for entry in entries}
    return Spec(document.get("containerEdits") or {}, devices)


def resolve(names: Sequence[str], folders: Iterable[Sequence[Spec]]) -> Edits:
    """The edits of all `names`, each file's common ones once. Raises Unresolvable, and then nothing is edited."""
    known: dict[str, Spec] = {}
    for specs in folders:
        known |= _of_folder(specs)
    missing = [name for name in names if name not in known]
    if missing:
        raise Unresolvable(missing)
    parts: list[Mapping[str, Any]] = []
    used: list[Spec] = []
    for name in names:
        spec = known[name]
        if not any(spec is other for other in used):
            used.append(spec)
            parts.append(spec.common)
        parts.append(spec.devices[name])
    return _merged(parts)


def names_of(cdi_field: Iterable[str], annotations: Mapping[str, str]) -> list[str]:
    """The CDI devices of an Allocate answer: those of its field, and those of annotations for older kubelets."""
    noted = (value for key, value in sorted(annotations.items()) if key.startswith(ANNOTATION_PREFIX))
    return list(dict.fromkeys([*cdi_field, *(name for value in noted for name in value.split(","))]))


def _of_folder(specs: Sequence[Spec]) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    doubled: set[str] = set()
    for spec in specs:
        for name in spec.devices:
            if name in found:
                doubled.add(name)
            found[name] = spec
    return {name: spec for name, spec in found.items() if name not in doubled}


def _merged(parts: Iterable[Mapping[str, Any]]) -> Edits:
    env: dict[str, str] = {}
    mounts: list[Mount] = []
    for part in parts:
        for assignment in part.get("env") or ():
            name, _, value = assignment.partition("=")
            env[name] = value
        mounts += [Mount(entry["hostPath"], entry["containerPath"]) for entry in part.get("mounts") or ()]
    return Edits(env, tuple(mounts))


class CdiFolders:
    """Specifications on disk, each file read again only after it changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._known: dict[Path, tuple[tuple[int, int, int], Spec | None]] = {}

    def resolve(self, names: Sequence[str]) -> Edits:
        """The edits of `names` as of now. Raises Unresolvable."""
        found = [self._read(folder) for folder in self._folders]
        present = {path for folder in self._folders for path in folder.glob("*")}
        self._known = {path: known for path, known in self._known.items() if path in present}
        return resolve(names, found)

    def _read(self, folder: Path) -> list[Spec]:
        paths = [path for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")]
        return [spec for path in paths if (spec := self._spec(path)) is not None]

    def _spec(self, path: Path) -> Spec | None:
        """A file that is no specification is passed over, as runtimes do."""
        try:
            found = path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if path in self._known and self._known[path][0] == stamp:
                return self._known[path][1]
            spec = parse(yaml.load(path.read_text(), Loader=yaml.CSafeLoader))
        except OSError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
            spec = None
        self._known[path] = (stamp, spec)
        return spec
