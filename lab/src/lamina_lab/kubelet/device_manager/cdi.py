"""Container Device Interface: device names are resolved in specification files to edits of a container.

Directories are read in order. A device in a later directory overrides one of the same name in an earlier directory; a
name that occurs twice in one directory is invalid.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

ANNOTATION_PREFIX = "cdi.k8s.io/"


class UnresolvableDevices(Exception):
    """Devices that no specification defines; the message is the container runtime's."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"CDI device injection failed: unresolvable CDI devices {', '.join(names)}")
        self.names = tuple(names)


class CdiMount(Struct, frozen=True):
    host_path: str
    container_path: str


class Edits(Struct, frozen=True):
    """What devices add to a container: variables, where the last one of a name counts, and mounts."""

    env: Mapping[str, str]
    mounts: tuple[CdiMount, ...] = ()


class Spec(Struct, frozen=True):
    """One file: the edits of each device by its full name, preceded by the file's common edits."""

    common: Mapping[str, Any]
    devices: Mapping[str, Mapping[str, Any]]


def parse(document: object) -> Spec:
    """The specification in a decoded file. Raises ValueError if it is not valid."""
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise ValueError("not a CDI specification")
    entries = document.get("devices") or ()
    devices = {f"{document['kind']}={entry['name']}": entry.get("containerEdits") or {} for entry in entries}
    return Spec(document.get("containerEdits") or {}, devices)


def resolve(names: Sequence[str], folders: Iterable[Sequence[Spec]]) -> Edits:
    """The edits of all `names`, with each file's common ones once. Raises UnresolvableDevices."""
    known: dict[str, Spec] = {}
    for specs in folders:
        known |= _of_folder(specs)
    missing = [name for name in names if name not in known]
    if missing:
        raise UnresolvableDevices(missing)
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
    """The CDI devices in an Allocate answer: its field, and annotations for older kubelets."""
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
    mounts: list[CdiMount] = []
    for part in parts:
        for assignment in part.get("env") or ():
            name, _, value = assignment.partition("=")
            env[name] = value
        mounts += [CdiMount(entry["hostPath"], entry["containerPath"]) for entry in part.get("mounts") or ()]
    return Edits(env, tuple(mounts))


class CdiFolders:
    """Specifications on disk. A file is read again only after it changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._known: dict[Path, tuple[tuple[int, int, int], Spec | None]] = {}

    def resolve(self, names: Sequence[str]) -> Edits:
        """The current edits of `names`. Raises UnresolvableDevices."""
        found = [self._read(folder) for folder in self._folders]
        present = {path for folder in self._folders for path in folder.glob("*")}
        self._known = {path: known for path, known in self._known.items() if path in present}
        return resolve(names, found)

    def _read(self, folder: Path) -> list[Spec]:
        paths = [path for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")]
        return [spec for path in paths if (spec := self._spec(path)) is not None]

    def _spec(self, path: Path) -> Spec | None:
        """Invalid files are skipped, as runtimes do."""
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
