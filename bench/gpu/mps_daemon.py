"""A daemon of MPS of this test's own. It changes no setting of the card: the compute mode stays as it is."""

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lamina.agent.mps.clients import MEMORY, PIPE, share_edits
from lamina.core.grants import Share
from lamina.errors import Outside
from lamina.operations.verify.machine import Site
from lamina.ports.mps import ControlProgram, Home
from lamina.ports.mps.program import CONTROL
from lamina_lab.programs import mps_control


@contextmanager
def mps_daemon(place: Site) -> Iterator[dict[str, str]]:
    """A daemon of the GPU for the time of the block, and the variables by which a program is its client. Raises Outside
    where NVIDIA's program is missing or does not start."""
    with TemporaryDirectory(prefix="lamina-mps-") as name:
        home = Home(place.gpu.uuid, Path(name))
        for folder in (home.pipe, home.log):
            folder.mkdir(parents=True)
        program = ControlProgram(_control(place, home.root))
        try:
            asyncio.run(program.start(home))
            yield {PIPE: str(home.pipe)}
        finally:
            asyncio.run(program.end(home))


def client_limits(gpu: str, memory_mib: int, cores: int) -> dict[str, str]:
    """The variables with which a container with such a grant comes to the daemon; 0 leaves a limit out."""
    edits = share_edits("", Home(gpu, Path()), Share(gpu=gpu, memory_mib=memory_mib, cores=cores))
    return {name: value for name, value in edits.env.items() if name != PIPE and (memory_mib or name != MEMORY)}


def _control(place: Site, folder: Path) -> str:
    """The path of NVIDIA's program, or of the lab's, which needs the simulated machine's variables."""
    if place.simulated:
        script, free = folder / CONTROL, place.free()
        own = [f"{name}={free[name]}" for name in ("SIMGPU_MACHINE", "LD_LIBRARY_PATH") if name in free]
        command = shlex.join(["env", *own, sys.executable, "-I", "-S", str(Path(mps_control.__file__))])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
        return str(script)
    found = shutil.which(CONTROL, path=f"{os.environ.get('PATH', '')}:{place.driver.parent / 'bin'}")
    if found is None:
        raise Outside(f"not tested: there is no {CONTROL} on PATH")
    return found
