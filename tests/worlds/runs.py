"""Runs of `lamina run` on simulated GPUs, as processes of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina_lab import simgpu
from lamina_lab.simgpu.description import place

HOLD = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
codes = [cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(mib) << 20)) for mib in sys.argv[1:]]
print(*codes, flush=True)
sys.stdin.read()
"""
"""Takes as many MiB as its arguments say, prints CUDA's codes, and holds them until its input ends."""


def holding(*mib: int) -> list[str]:
    """The command that holds these amounts."""
    return [sys.executable, "-c", HOLD, *map(str, mib)]


@contextmanager
def running(*options: str, command: list[str] | None = None) -> Iterator["subprocess.Popen[str]"]:
    """A run whose command has begun: it printed a line, which is in `begun`. Its standard input keeps it there."""
    pipe = subprocess.PIPE
    line = [sys.executable, "-m", "lamina", "run", *options, "--", *(command or ["sh", "-c", "echo ready; cat"])]
    process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.communicate()[1]
        yield process
    finally:
        process.communicate()


def private_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for runs of this test alone, on a machine without a driver, a kubeconfig and a choice of GPUs."""
    for name in ("LD_LIBRARY_PATH", "SIMGPU_MACHINE", "CUDA_VISIBLE_DEVICES", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


def machine_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *models: str, unified_memory: bool = False) -> list[str]:
    """A simulated driver with GPUs where the loader would find a real one; their UUIDs."""
    gpus = tuple(simgpu.GpuSpec(model=each) for each in models)
    described = simgpu.Machine(gpus=gpus, seed=str(folder), unified_memory=unified_memory)
    where = folder.with_name(f"{folder.name}-machine")
    simgpu.write(described, where)
    monkeypatch.setenv("SIMGPU_MACHINE", str(where))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{simgpu.driver_folder()}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    return [gpu.uuid for gpu in place(described)]
