"""A node's GPUs: a simulated machine, the driver's files, and the runtime that brings them into containers."""

import json
import shutil
import stat
import sys
import zipapp
from pathlib import Path

import lamina
import lamina_lab
from lamina_lab import simgpu

RUNTIME = Path(__file__).with_name("container_runtime.py")
MPS_CONTROL = Path(lamina_lab.__file__).parent / "programs/mps_control.py"
PYTHON_OF_IMAGES = "/usr/bin/python3"


def install_driver(folder: Path) -> Path:
    """The driver's files as they lie on every node: two libraries, nvidia-smi for images that have Python, and MPS."""
    folder.mkdir(parents=True)
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(simgpu.library(library), folder / library)
    _write_smi(folder / "nvidia-smi")
    control = folder / "nvidia-cuda-mps-control"
    control.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {MPS_CONTROL} "$@"\n')
    control.chmod(0o755)
    return folder


def _write_smi(target: Path) -> None:
    import pynvml

    sandbox = target.with_name("smi")
    product, lab = Path(lamina.__file__).parent, Path(lamina_lab.__file__).parent
    for package, part in ((product, "__init__.py"), (product, "errors.py"), (lab, "__init__.py")):
        (sandbox / package.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(package / part, sandbox / package.name / part)
    # Of the port only what `topo` reads; the rest of the package needs more than images have.
    (links := sandbox / "lamina/ports/nvml/links.py").parent.mkdir(parents=True)
    shutil.copy(product / "ports/nvml/links.py", links)
    for folder in (links.parent, links.parent.parent):
        (folder / "__init__.py").touch()
    shutil.copytree(lab / "smi", sandbox / "lamina_lab/smi", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(pynvml.__file__, sandbox / "pynvml.py")
    zipapp.create_archive(sandbox, target, PYTHON_OF_IMAGES, main="lamina_lab.smi.main:main")
    shutil.rmtree(sandbox)
    target.chmod(0o755)


class Gpus:
    """The GPUs of one node, below `folder`, which lasts over reboots."""

    def __init__(self, folder: Path, machine: simgpu.Machine, driver: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        (folder / "proc").mkdir()  # where containers have the node's
        self.machine, self.driver = folder / "machine", driver
        self.become(machine)

    def become(self, machine: simgpu.Machine) -> None:
        """Have other GPUs, while nothing uses those there are."""
        self.description = machine
        simgpu.write(machine, self.machine)
        self.machine.chmod(0o666)

    def power_cycle(self) -> None:
        """What was set or made of the GPUs is gone, MIG and compute modes too, as after a reboot."""
        self.become(self.description)

    @property
    def environment(self) -> dict[str, str]:
        """What a program of the node needs to see the GPUs."""
        return {"SIMGPU_MACHINE": str(self.machine), "LD_LIBRARY_PATH": str(self.driver)}

    def write_runtime(self, folder: Path, runc: Path) -> Path:
        """The OCI runtime of this node: NVIDIA's, as far as it is visible from outside."""
        settings = {"machine": str(self.machine.parent), "driver": str(self.driver)}
        (folder / "gpus.json").write_text(json.dumps(settings))
        script = folder / "nvidia-container-runtime"
        edit = f"{sys.executable} -I -S {RUNTIME} {folder / 'gpus.json'}"
        script.write_text(f'#!/bin/sh\ncase " $* " in *" create "*) {edit} "$@" || exit 1;; esac\nexec {runc} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return script
