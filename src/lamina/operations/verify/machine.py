"""The GPU that is looked at, and processes on it: under limits, or under none for comparison."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lamina.core.grants import ComputePolicy
from lamina.core.quantities import MIB
from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from lamina.enforcement.driver import LocalGpu
from lamina.enforcement.run_machine import find_machine
from lamina.errors import Outside

TIMEOUT_S = 120
_OURS = ("LAMINA_", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD")


@dataclass(frozen=True)
class Site:
    """One GPU, its driver's directory, and the variables of a process without limits."""

    folder: Path
    driver: Path
    gpu: LocalGpu
    variables: dict[str, str]
    simulated: bool
    enforced: bool = True
    """False leaves the facade out: what it should hold is then not held, and every check must say so."""

    def free(self) -> dict[str, str]:
        """The environment of a process without limits."""
        own = dict(self.variables)
        paths = (
            [str(self.driver), own.get("LD_LIBRARY_PATH", "")] if self.simulated else [own.get("LD_LIBRARY_PATH", "")]
        )
        own["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        return own | {"CUDA_VISIBLE_DEVICES": self.gpu.uuid}

    def held(
        self,
        memory_mib: int = 0,
        *,
        cores: int = 0,
        policy: ComputePolicy = ComputePolicy.CAP,
        physical_mib: int = 0,
    ) -> dict[str, str]:
        """The environment of a process in a container of its own. By default it has all of the memory, and none of it
        is managed."""
        if not self.enforced:
            return self.free()
        container = Path(tempfile.mkdtemp(prefix="container-", dir=self.folder))
        limit = DeviceLimit(
            uuid=self.gpu.uuid,
            memory_bytes=(memory_mib or self.gpu.memory_mib) * MIB,
            physical_bytes=physical_mib * MIB,
            cores_percent=cores,
            compute_policy=policy if cores else ComputePolicy.NONE,
        )
        write_container(container, Limits(devices=(limit,)))
        return environment(container, self.driver, self.variables)

    def start(self, variables: dict[str, str], *arguments: str) -> "subprocess.Popen[str]":
        """Starts a tenant."""
        command = [sys.executable, "-m", "lamina.operations.verify.tenant", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def ask(self, variables: dict[str, str], *arguments: str) -> dict[str, float]:
        """What a tenant answers. Raises Outside when it fails."""
        return answer(self.start(variables, *arguments))


def answer(tenant: "subprocess.Popen[str]") -> dict[str, float]:
    """The answer of a tenant that ends now. Raises Outside when it fails."""
    try:
        output, wrong = tenant.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as late:
        tenant.kill()
        tenant.communicate()
        raise Outside(f"a program under test did not end within {TIMEOUT_S} s") from late
    if tenant.returncode != 0 or not output.strip():
        last = (wrong.strip() or f"exit code {tenant.returncode}").splitlines()[-1]
        raise Outside(f"a program under test failed: {last}")
    found: dict[str, float] = json.loads(output)
    return found


@contextmanager
def site(gpu: str, simulate: str | None, *, enforced: bool = True) -> Iterator[Site]:
    """The chosen GPU, for the time of the block. Raises Outside when there is none, BadInput for a wrong one."""
    with tempfile.TemporaryDirectory(prefix="lamina-verify-") as name:
        folder = Path(name)
        machine = find_machine(folder, gpu, simulate)
        variables = {name: value for name, value in machine.variables.items() if not name.startswith(_OURS)}
        yield Site(folder, machine.driver, machine.gpu, variables, "SIMGPU_MACHINE" in variables, enforced)
