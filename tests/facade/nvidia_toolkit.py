"""NVIDIA's container toolkit itself, over a simulated machine.

LAMINA_NVIDIA_TOOLKIT is the folder of its programs `nvidia-ctk` and `nvidia-cdi-hook`, built from its source.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.facade import oci
from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER

NODES = {"nvidia0": (195, 0), "nvidiactl": (195, 255), "nvidia-uvm": (510, 0)}


def folder() -> Path:
    """Of its programs. Skips the test where there is none."""
    if not (given := os.environ.get("LAMINA_NVIDIA_TOOLKIT")):
        pytest.skip("set LAMINA_NVIDIA_TOOLKIT to the folder of nvidia-ctk and nvidia-cdi-hook")
    return Path(given)


def generated(box: Mounted) -> oci.Edits:
    """What the CDI spec that it generates for this node gives a container with the GPU: mounts of the driver's files,
    links to them, and the cache of the loader. Device nodes are left out, and the variable that simgpu reads in their
    place, which the toolkit sets so that its runtime adds nothing more."""
    programs, root = folder(), box.host / "toolkit"
    libraries, devices = root / LIBRARY_FOLDER[1:], root / "dev"
    shutil.copytree(box.driver, libraries, symlinks=True)
    devices.mkdir()
    for name, numbers in NODES.items():
        os.mknod(devices / name, 0o20666, os.makedev(*numbers))
    command = [
        programs / "nvidia-ctk", "cdi", "generate", "--mode=nvml", "--format=json", "--device-name-strategy=uuid",
        f"--driver-root={root}", f"--dev-root={root}", f"--nvidia-cdi-hook-path={programs / 'nvidia-cdi-hook'}",
    ]  # fmt: skip
    variables = {**os.environ, "SIMGPU_MACHINE": str(box.host / "machine"), "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    edits = oci.edits_of(json.loads(done.stdout)["containerEdits"])
    return edits | {"env": [each for each in edits["env"] if not each.startswith("NVIDIA_VISIBLE_DEVICES=")]}
