"""A container of a real runtime, runc or crun, with the agent's CDI edits and the driver's files as NVIDIA's adds them.

The image is this machine's file system below a layer of its own.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER, VERSION

NAMESPACES = ("pid", "ipc", "uts", "mount")
SYSTEM_MOUNTS = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
)


def runtime(name: str) -> str:
    """The runtime's path. Skips the test where it is missing, or this user may not use it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"there is no {name}; Debian's package has its name")
    if os.geteuid() != 0:
        pytest.skip(f"{name} needs root here")
    return path


def bind(source: Path | str, destination: str, *options: str) -> dict[str, object]:
    return {"source": str(source), "destination": destination, "type": "bind", "options": ["rbind", *options]}


def config(box: Mounted, command: list[str], variables: dict[str, str]) -> dict[str, object]:
    """The container's description, after NVIDIA's runtime and the CDI spec have been applied."""
    machine = box.host / "machine"
    env = {"PATH": os.environ["PATH"], "SIMGPU_MACHINE": str(machine), **variables}
    driver = [
        bind(box.driver / f"{name}.1", f"{LIBRARY_FOLDER}/{name}.{VERSION}", "ro")
        for name in ("libcuda.so", "libnvidia-ml.so")
    ]
    ours = [bind(str(each["hostPath"]), str(each["containerPath"]), *each["options"]) for each in box.edits["mounts"]]  # type: ignore[misc]
    hooks = [{"path": str(each["path"]), "args": each["args"]} for each in box.edits["hooks"]]
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "root"},
        "hostname": "container",
        "process": {
            "cwd": "/", "args": command, "env": [f"{name}={value}" for name, value in env.items()],
            "user": {"uid": 0, "gid": 0}, "noNewPrivileges": True,
        },
        "mounts": [*SYSTEM_MOUNTS, bind(machine, str(machine)), *ours, *driver],
        "hooks": {"createContainer": hooks},
        "linux": {"namespaces": [{"type": kind} for kind in NAMESPACES]},
    }  # fmt: skip


def run(program: str, box: Mounted, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command in a container until it ends."""
    bundle = box.host / f"bundle-{len(list(box.host.glob('bundle-*')))}"
    for folder in ("root", "image"):
        (bundle / folder).mkdir(parents=True)
    for content, inside in box.image:
        (place := bundle / "image" / inside[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(content, place)
    (bundle / "config.json").write_text(json.dumps(config(box, list(command), variables)))
    script = """
        set -e
        # Only the second version of cgroups, as new nodes have it; crun does not start where both are mounted.
        mount -t cgroup2 none /sys/fs/cgroup
        mkdir -p "$1/layers"
        mount -t tmpfs layers "$1/layers"
        mkdir "$1/layers/upper" "$1/layers/work"
        mount -t overlay root -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$1/root"
        rm -rf "$1/root/usr/local/cuda"*
        cp -R "$1/image/." "$1/root/"
        mkdir -p "$1/root$3" && ln -sf "libcuda.so.$4" "$1/root$3/libcuda.so.1"
        ln -sf "libnvidia-ml.so.$4" "$1/root$3/libnvidia-ml.so.1"
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
