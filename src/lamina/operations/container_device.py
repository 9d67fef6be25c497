"""The limits of `lamina run` for containers of Docker and Podman, by a CDI device that lasts as long as the run.

Its spec has what the agent's specs have for pods: the limits as mounts, the facade over the driver's files, and what
tells NVIDIA's container runtime which GPU to add. The kind differs, so that an agent on the same machine takes none of
these specs for its own.
"""

import re
from pathlib import Path
from typing import NamedTuple

from lamina import native
from lamina.agent.containers import cdi
from lamina.agent.containers.paths import install_libraries, limited_mounts
from lamina.enforcement.environment import loadable
from lamina.errors import BadInput
from lamina.ports.files import Files

KIND = "lamina.dev/gpu"
SPECS = Path("/var/run/cdi")
"""Docker and Podman read the specs here, and in /etc/cdi."""
_MAX_NAME = 63
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")


class NamedDevice(NamedTuple):
    """The device `lamina.dev/gpu=NAME`, with its spec in the directory `specs`."""

    name: str
    specs: Path
    files: Files

    @property
    def spec(self) -> Path:
        return self.specs / f"lamina.dev-gpu_{self.name}.json"

    def write(self, folder: Path, driver: Path, gpu: str) -> None:
        """Make the spec, for the limits in `folder`. Raises BadInput and Outside."""
        if self.files.has_file(self.spec):
            raise BadInput(
                f"another run has the device {KIND}={self.name}: choose another name, or remove {self.spec} if no run "
                "has it"
            )
        if not loadable(folder):
            raise BadInput(f"containers cannot load libraries from {folder}; set TMPDIR to a directory without noexec")
        facade = native.path("facade/libcuda.so.1").parent
        libraries = install_libraries(facade, folder / "lib", self.files, driver)
        mounts = [*limited_mounts(folder, driver, libraries), *cdi.device_mounts(gpu)]
        self.files.write(
            self.spec, cdi.build_spec(self.name, {cdi.VISIBLE: gpu}, mounts, [libraries.hook()], kind=KIND)
        )


def container_device(name: str, specs: Path = SPECS) -> NamedDevice:
    """The device with a name. Raises BadInput for names that no runtime takes."""
    if _NAME.fullmatch(name) is None or len(name) > _MAX_NAME:
        raise BadInput(
            f"--cdi must be a name of at most {_MAX_NAME} letters, digits, dots, dashes and underscores, got {name!r}"
        )
    return NamedDevice(name, specs.absolute(), Files())
