"""The cluster's own images: what holds a pod's namespaces, and a small Debian with Python for workloads."""

import os
import shutil
from pathlib import Path

import lamina_lab
from lamina.operations import gpu_load
from tests.cluster.components import cache, images
from tests.cluster.components.binaries import fetch
from tests.cluster.components.commands import run
from tests.cluster.components.containerd import PAUSE
from tests.cluster.components.debian import STABLE, unpack

WORKLOAD = "stage.local/workload:1"
PACKAGES = (
    *("base-files", "bash", "coreutils", "dash", "grep", "hostname", "procps", "sed", "util-linux"),
    *("libc6", "libc-bin", "libgcc-s1", "libstdc++6", "libselinux1", "libpcre2-8-0", "libacl1", "libattr1", "libgmp10"),
    *("libssl3", "libtinfo6", "libncursesw6", "libproc2-0", "libsystemd0", "libcap2", "libgcrypt20", "libgpg-error0"),
    *("liblz4-1", "liblzma5", "libzstd1", "zlib1g", "libbz2-1.0", "libexpat1", "libffi8", "libblkid1", "libmount1"),
    *("libsmartcols1", "libuuid1", "libcap-ng0", "libudev1"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)
LAB = Path(lamina_lab.__file__).parent / "programs"
LOAD = Path(gpu_load.__file__)
HOSTILE = Path(__file__).parents[1] / "hostile/program.py"
PROGRAMS = {
    "usr/bin/gpu-load": LOAD,
    "usr/bin/dcgmproftester11": LAB / "dcgmproftester.py",
    "usr/bin/dcgmproftester12": LAB / "dcgmproftester.py",
    "usr/lib/python3.11/lamina/operations/gpu_load.py": LOAD,
    "usr/lib/python3.11/lamina_lab/programs/mps_control.py": LAB / "mps_control.py",
    "gpu_torch.py": LAB / "gpu_torch.py",
    "usr/bin/hostile": HOSTILE,
}
"""Those of the lab's containers and that of the hostile tenant, by their path in the image."""
ENTRY = """#!/bin/sh
# For manifests that name no command: without arguments wait, else multiply.
[ $# -eq 0 ] && exec sleep infinity
exec dcgmproftester11 "$@"
"""
SCRIPTS = {"entry": ENTRY}


def write(folder: Path) -> list[Path]:
    """Write the archives of all images."""
    folder.mkdir(parents=True)
    return [_pause(folder), _workload(folder)]


def _pause(folder: Path) -> Path:
    root = folder / "pause"
    root.mkdir()
    source = Path(__file__).with_name("pause.c")
    run([os.environ.get("CC", "cc"), "-static", "-O2", "-s", "-o", root / "pause", source])
    return images.write(folder / "pause.tar", PAUSE, root, entrypoint=["/pause"])


def _workload(folder: Path) -> Path:
    """The packages are unpacked once; the tests' own programs come new every time."""
    base = cache.kept("workload-debian-12", _unpack_workload)
    root = folder / "workload"
    shutil.copytree(base, root, symlinks=True)
    scripts = {name: f"#!/usr/bin/python3\n{file.read_text()}" for name, file in PROGRAMS.items()}
    for name, script in (scripts | SCRIPTS).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(script)
        (root / name).chmod(0o755)
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    return images.write(folder / "workload.tar", WORKLOAD, root, entrypoint=["/entry"], env=path)


def _unpack_workload(work: Path, result: Path) -> None:
    unpack(fetch([f"{name}/{STABLE}" for name in PACKAGES], work), result)
    for part in ("bin", "lib", "lib64", "sbin"):  # as on every Debian of today, one folder under two names
        if (result / part).is_dir():
            run(["cp", "-a", f"{result / part}/.", result / "usr" / part])
            shutil.rmtree(result / part)
        (result / part).symlink_to(f"usr/{part}")
    (result / "usr/bin/python3").symlink_to("python3.11")
    for part in ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info"):
        shutil.rmtree(result / part, ignore_errors=True)
    for part in ("proc", "sys", "dev", "tmp", "run", "etc", "root"):
        (result / part).mkdir(exist_ok=True)
    (result / "tmp").chmod(0o1777)
