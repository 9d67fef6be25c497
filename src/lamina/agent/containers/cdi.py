"""CDI specs: what the container runtime adds to a container that has one of our CDI names.

There is one file per name, and the file's name contains it, so that a directory listing is enough to know all names. A
file is written to the same directory under a name that the runtime does not read and then renamed, because the
runtime's cache misses files that are moved in from elsewhere. CDI 0.5.0 is the first version in which a device's name
may begin with a digit.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

KIND = "lamina.dev/ticket"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
"""The variable that tells NVIDIA's container runtime which GPUs to add."""
VOLUMES = "/var/run/nvidia-container-devices"
"""Below it, a mount of /dev/null tells the same, in the name of a file."""
_FILE = re.compile(r"lamina\.dev-ticket_([0-9a-f]{32})\.json")


class Mount(NamedTuple):
    """The host path `host` appears in the container as `container`. Programs and libraries are `executable`."""

    host: Path
    container: str
    writable: bool = False
    executable: bool = False

    @property
    def options(self) -> list[str]:
        flags = ["nosuid", "nodev"] if self.executable else ["nosuid", "nodev", "noexec"]
        return ["rw" if self.writable else "ro", *flags, "rbind", "rprivate"]


class Hook(NamedTuple):
    """A program of the node that the runtime runs in the container's mount namespace after all mounts."""

    program: Path
    arguments: tuple[str, ...] = ()


def device_mounts(visible: str) -> list[Mount]:
    """The mounts that name the devices of this value of the variable; none where it says itself that mounts do.

    Each node decides what its runtime takes from unprivileged containers: the variable by default, the mounts with
    accept-nvidia-visible-devices-as-volume-mounts. It ignores what it does not take, so containers get both. A
    container without a grant cannot have such mounts unless it may mount /dev/null from the node.
    """
    devices = [] if visible.startswith("/") else [each for each in visible.split(",") if each]
    return [Mount(Path("/dev/null"), f"{VOLUMES}/{device}") for device in devices]


def device_name(name: str) -> str:
    """The fully qualified device name for kubelet."""
    return f"{KIND}={name}"


def annotation(name: str) -> tuple[str, str]:
    """The same as a container annotation, for kubelets before 1.31, which do not pass on the field."""
    return f"cdi.k8s.io/lamina_{name}", device_name(name)


def file_name(name: str) -> str:
    return f"lamina.dev-ticket_{name}.json"


def name_of_file(file: str) -> str | None:
    """The CDI name in the name of a file; None for files of other programs."""
    match = _FILE.fullmatch(file)
    return match[1] if match else None


def is_ours(file: str) -> bool:
    """Whether a file in the CDI directory is the agent's, including incomplete ones."""
    return file.lstrip(".").startswith("lamina.dev-ticket_")


def build_spec(
    name: str, env: Mapping[str, str], mounts: Sequence[Mount], hooks: Sequence[Hook] = (), *, kind: str = KIND
) -> bytes:
    """The content of the spec of `name`."""
    edits: dict[str, object] = {"env": [f"{key}={value}" for key, value in env.items()]}
    if mounts:
        edits["mounts"] = [
            {
                "hostPath": str(mount.host),
                "containerPath": mount.container,
                "options": mount.options,
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
    document = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": name, "containerEdits": edits}]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def visible_devices(document: bytes) -> tuple[str, ...]:
    """UUIDs of the devices that a spec makes visible; empty if the spec cannot be read."""
    try:
        (device,) = msgspec.json.decode(document)["devices"]
        variables = [edit for edit in device["containerEdits"]["env"] if edit.startswith(f"{VISIBLE}=")]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return ()
    return tuple(uuid for edit in variables for uuid in edit.partition("=")[2].split(",") if uuid)
