"""Asks NVML of a simulated machine in a process of its own."""

import sys
from pathlib import Path
from typing import Any

from tests.simgpu.machines import Machine

PROBE = str(Path(__file__).with_name("nvml_probe.py"))


def nvml(machine: Machine, expression: str, **env: str) -> Any:
    done = machine.run(sys.executable, PROBE, expression, **env)
    assert done.returncode == 0, done.stderr
    text = done.stdout.strip()
    return int(text.removeprefix("error ")) if text.startswith("error") else eval(text)
