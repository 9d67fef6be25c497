"""The libraries of the facade, their generator and the names that they export."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


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
