"""A driver that counts the calls which go past the facade; see native/tests/counting_driver.c."""

import array
import platform
from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.building import compile_program
from tests.facade.driver_libraries import exported, generate


class CountingDriver:
    """The folder of a driver, and what was called there."""

    def __init__(self, folder: Path) -> None:
        if platform.machine() != "x86_64":
            pytest.skip("the driver that counts calls is written for x86-64")
        self.folder, self.counts = folder, folder / "counts"
        self.driver = simgpu.library("libcuda.so.1")
        self.names = sorted(exported(self.driver))
        (folder / "names.h").write_text("".join(f"NAME({i}, {name})\n" for i, name in enumerate(self.names)))
        flags = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", f'-DNAMES="{folder / "names.h"}"')
        compile_program(folder, "libcuda.so.1", ["native/tests/counting_driver.c"], *flags)
        (folder / "libnvidia-ml.so.1").symlink_to(simgpu.library("libnvidia-ml.so.1"))
        self.counts.write_bytes(bytes(8 * len(self.names)))

    @property
    def environment(self) -> dict[str, str]:
        return {"COUNTED_DRIVER": str(self.driver), "COUNTED_CALLS": str(self.counts)}

    def past_the_facade(self) -> dict[str, dict[str, int]]:
        """Calls of the driver's own functions since the beginning, by class and name."""
        classes = generate.read_classes("cuda")
        found: dict[str, dict[str, int]] = {}
        for name, count in zip(self.names, array.array("Q", self.counts.read_bytes()), strict=True):
            if count:
                kind = classes[name][0] if name in classes else "none"
                found.setdefault(kind, {})[name] = count
        return found
