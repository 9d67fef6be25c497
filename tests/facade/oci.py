"""A container of a real runtime, runc or crun, with the agent's CDI edits and the driver's files as NVIDIA's adds them.

The image is this machine's file system below a layer of its own.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER, VERSION

Edits = dict[str, list[Any]]
NAMESPACES = ("pid", "ipc", "uts", "mount")
SYSTEM_MOUNTS = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
)


def runtime(name: str) -> str:
    """The runtime's path. Skips the test where it is missing. Runtimes need root here."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"there is no {name}; Debian's package has its name")
    return path


def bind(source: Path | str, destination: str, *options: str) -> dict[str, object]:
    return {"source": str(source), "destination": destination, "type": "bind", "options": ["rbind", *options]}


def small_toolkit(box: Mounted) -> Edits:
    """The driver's files as NVIDIA's container toolkit adds them, in small."""
    names = ("libcuda.so", "libnvidia-ml.so")
    mounts = [bind(box.driver / f"{name}.1", f"{LIBRARY_FOLDER}/{name}.{VERSION}", "ro") for name in names]
    return {"mounts": mounts, "hooks": [], "env": []}


def edits_of(edits: Mapping[str, Any]) -> Edits:
    """The edits of a CDI spec, in the words of a container's description."""
    mounts = [bind(each["hostPath"], each["containerPath"], *each["options"]) for each in edits.get("mounts", [])]
    hooks = [{key: each[key] for key in ("path", "args", "env") if key in each} for each in edits.get("hooks", [])]
    return {"mounts": mounts, "hooks": hooks, "env": edits.get("env", [])}


def config(box: Mounted, command: list[str], toolkit: Edits, *, ours_last: bool) -> dict[str, object]:
    """The container's description, after all CDI specs have been applied."""
    machine = box.host / "machine"
    all_edits = [toolkit, edits_of(box.edits)]
    ordered = all_edits if ours_last else all_edits[::-1]
    mounts, hooks, env = ([each for edits in ordered for each in edits[key]] for key in ("mounts", "hooks", "env"))
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "root"},
        "hostname": "container",
        "process": {
            "cwd": "/", "args": command, "env": [f"PATH={os.environ['PATH']}", f"SIMGPU_MACHINE={machine}", *env],
            "user": {"uid": 0, "gid": 0}, "noNewPrivileges": True,
        },
        "mounts": [*SYSTEM_MOUNTS, bind(machine, str(machine)), *mounts],
        "hooks": {"createContainer": hooks},
        "linux": {"namespaces": [{"type": kind} for kind in NAMESPACES]},
    }  # fmt: skip


def run(
    program: str, box: Mounted, *command: str, toolkit: Edits | None = None, ours_last: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Runs a command in a container until it ends. Without a toolkit's edits the driver's files come from a small one,
    with the links of its `ldconfig`. `ours_last` is the order of the mounts and hooks."""
    bundle = box.host / f"bundle-{len(list(box.host.glob('bundle-*')))}"
    for folder in ("root", "image"):
        (bundle / folder).mkdir(parents=True)
    for content, inside in box.image:
        (place := bundle / "image" / inside[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(content, place)
    if toolkit is None:
        (links := bundle / "image" / LIBRARY_FOLDER[1:]).mkdir(parents=True)
        for name in ("libcuda.so", "libnvidia-ml.so"):
            (links / f"{name}.1").symlink_to(f"{name}.{VERSION}")
    described = config(box, list(command), toolkit or small_toolkit(box), ours_last=ours_last)
    (bundle / "config.json").write_text(json.dumps(described))
    script = """
        set -e
        # Only the second version of cgroups, as new nodes have it; crun does not start where both are mounted.
        mount -t cgroup2 none /sys/fs/cgroup
        mkdir -p "$1/layers"
        mount -t tmpfs layers "$1/layers"
        mkdir "$1/layers/upper" "$1/layers/work"
        mount -t overlay root -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$1/root"
        rm -rf "$1/root/usr/local/cuda"*
        cp -a "$1/image/." "$1/root/"
        cd "$1"
        exec "$2" --root "$1/state" run --bundle "$1" "lamina-test-$$"
    """
    arguments = [str(bundle), program, LIBRARY_FOLDER, VERSION]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
