"""Leftovers on a node, as a defect would leave them: made for a test, and removed again."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamina.agent.containers import cdi
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.node import RealNode

NAME = "0" * 32
OWNER = "00000000-0000-0000-0000-000000000000"
CUT = """
import ctypes
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByUUID({gpu!r})
assert nv.nvmlDeviceSetMigMode(gpu, 1) == 0
at = nv.c_nvmlGpuInstancePlacement_t(start=0, size=1)
made = nv.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 19, ctypes.byref(at))
nv.nvmlGpuInstanceCreateComputeInstance(made, 0)
"""
"""Makes a MIG device 1g.5gb of an A100."""
REPAIR = """
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByUUID({gpu!r})
device = nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
made = nv.nvmlDeviceGetGpuInstanceById(gpu, nv.nvmlDeviceGetGpuInstanceId(device))
nv.nvmlComputeInstanceDestroy(nv.nvmlGpuInstanceGetComputeInstanceById(made, 0))
nv.nvmlGpuInstanceDestroy(made)
assert nv.nvmlDeviceSetMigMode(gpu, 0) == 0
"""


def inject_spec(node: RealNode, gpu: str) -> None:
    """A CDI spec; the agent takes it away when it comes."""
    target = _root(node) / "run/cdi" / cdi.file_name(NAME)
    target.write_bytes(cdi.build_spec(NAME, {cdi.VISIBLE: gpu}, []))


def inject_folder(node: RealNode) -> str:
    """A copy of a container's folder; the agent takes it away when it comes. Its name."""
    like = next((_root(node) / "var/lib/lamina/containers").glob("*_main"))
    return str(shutil.copytree(like, like.with_name(f"{OWNER}_main")).name)


@contextmanager
def instance(node: RealNode, gpu: str) -> Iterator[None]:
    """A MIG device on a GPU that no one uses."""
    _run(node, CUT.format(gpu=gpu))
    try:
        yield
    finally:
        _run(node, REPAIR.format(gpu=gpu))


@contextmanager
def daemon(node: RealNode, gpu: str) -> Iterator[None]:
    """A process that looks like a daemon of MPS."""
    words: list[str | Path] = ["sleep", "infinity"]
    worn = {"CUDA_MPS_LOG_DIRECTORY": f"/nowhere/{gpu}/log"}
    made = Daemon(node.sandbox, "planted", words, worn, node.folder / "logs/planted.log")
    made.start()
    try:
        yield
    finally:
        made.kill()


def _root(node: RealNode) -> Path:
    return Path(f"/proc/{node.sandbox.pid}/root")


def _run(node: RealNode, script: str) -> None:
    node.sandbox.run(sys.executable, "-c", script, env={"PATH": "/usr/bin:/bin", **node.gpus.environment})
