"""The libraries of the facade, their generator, the names that they export and NVIDIA's headers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
HEADER_PLACES = [Path(p) for p in (os.environ.get("CUDA_HOME", "/usr/local/cuda"), *sys.path) if p]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "native/facade/generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()
LIBRARIES = {"cuda": "facade/libcuda.so.1", "nvml": "facade/libnvidia-ml.so.1"}


def reported(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(path: Path) -> set[str]:
    return {line.split()[-1] for line in reported("nm", "-D", "--defined-only", path).splitlines()}


def header_folders() -> list[Path]:
    """Where this machine has NVIDIA's headers: a toolkit, or the packages of PyPI."""
    found = [place / "include" for place in HEADER_PLACES[:1] if (place / "include/cuda.h").exists()]
    return found + [place / "nvidia" for place in HEADER_PLACES[1:] if (place / "nvidia").is_dir()]
