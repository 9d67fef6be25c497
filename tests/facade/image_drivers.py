"""A node whose driver has a version, and images with a driver library of their own for forward compatibility."""

import shutil
from pathlib import Path

from lamina_lab import simgpu
from tests.facade.mounted import Mounted

NODES = "550.54.15"
FOLDER = "/usr/local/cuda-13.0/compat"
LIBRARY = simgpu.library("libcuda.so.1")


def node(host: Path, version: str = NODES) -> Mounted:
    """A node whose driver has its version in the names of its files, as NVIDIA's has."""
    driver = host / "driver"
    driver.mkdir()
    for name in ("libcuda.so", "libnvidia-ml.so"):
        shutil.copyfile(simgpu.library(f"{name}.1"), driver / f"{name}.{version}")
        (driver / f"{name}.1").symlink_to(f"{name}.{version}")
    return Mounted(host, 1000, driver=driver)


def image_library(box: Mounted, version: str, folder: str = FOLDER) -> str:
    """Gives the image a library that differs from the node's. Returns its path in the container."""
    content = box.host / f"libcuda.so.{version}"
    content.write_bytes(LIBRARY.read_bytes() + version.encode())
    box.image.append((content, f"{folder}/{content.name}"))
    return f"{folder}/{content.name}"
