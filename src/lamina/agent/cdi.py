"""CDI specs: what the container runtime adds to a container that was given one of our names.

One file per name, named so that the folder alone tells which names there are. A file is written beside its place under
a name that the runtime does not read, and renamed within the folder: its cache misses files that are moved in from
elsewhere. Version 0.5.0 is the first in which a device's name may begin with a digit.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

KIND = "lamina.dev/ticket"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
"""By which NVIDIA's container runtime brings in GPUs."""
_FILE = re.compile(r"lamina\.dev-ticket_([0-9a-f]{32})\.json")


class Mount(NamedTuple):
    """`host` is shown to the container as `container`."""

    host: Path
    container: str
    writable: bool = False


class Hook(NamedTuple):
    """A program of the node that the runtime calls in the container's mount namespace, when all mounts are made."""

    program: Path
    arguments: tuple[str, ...] = ()


def device(name: str) -> str:
    """The fully qualified device that kubelet is told."""
    return f"{KIND}={name}"


def annotation(name: str) -> tuple[str, str]:
    """The same as a container annotation, for kubelets before 1.31, which do not pass the field on."""
    return f"cdi.k8s.io/lamina_{name}", device(name)


def file_name(name: str) -> str:
    return f"lamina.dev-ticket_{name}.json"


def name_in(file: str) -> str | None:
    """The name whose spec a file of this name holds; None for files of others."""
    match = _FILE.fullmatch(file)
    return match[1] if match else None


def ours(file: str) -> bool:
    """Whether a file in the CDI folder is this agent's, half-written ones included."""
    return file.lstrip(".").startswith("lamina.dev-ticket_")


def spec(name: str, env: Mapping[str, str], mounts: Sequence[Mount], hooks: Sequence[Hook] = ()) -> bytes:
    """The text of the spec of `name`."""
    edits: dict[str, object] = {"env": [f"{key}={value}" for key, value in env.items()]}
    if mounts:
        edits["mounts"] = [
            {
                "hostPath": str(mount.host),
                "containerPath": mount.container,
                "options": ["rw" if mount.writable else "ro", "nosuid", "nodev", "rbind", "rprivate"],
            }
            for mount in mounts
        ]
    if hooks:
        edits["hooks"] = [
            {
                "hookName": "createContainer",
                "path": str(hook.program),
                "args": [hook.program.name, *hook.arguments],
            }
            for hook in hooks
        ]
    document = {"cdiVersion": "0.5.0", "kind": KIND, "devices": [{"name": name, "containerEdits": edits}]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def visible(document: bytes) -> tuple[str, ...]:
    """The devices that a spec's container sees, by UUID; none where the spec cannot be read."""
    try:
        (found,) = msgspec.json.decode(document)["devices"]
        named = [edit for edit in found["containerEdits"]["env"] if edit.startswith(f"{VISIBLE}=")]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return ()
    return tuple(uuid for edit in named for uuid in edit.partition("=")[2].split(",") if uuid)
