"""Tools that people have run on a simulated machine, unchanged."""

import sys
from pathlib import Path

from tests.simgpu.machines import CONTEXT_MIB, Machine

BIN = Path(sys.executable).parent


def test_gpustat(machine: Machine) -> None:
    process = machine.started()
    done = machine.run(str(BIN / "gpustat"), "--json")
    assert done.returncode == 0, done.stderr
    assert '"memory.used": 303' in done.stdout
    assert f'"pid": {process.pid}' in done.stdout
    table = machine.run(str(BIN / "gpustat"), "--no-color").stdout
    assert f"{CONTEXT_MIB} / 16160 MB" in table


def test_nvitop(machine: Machine) -> None:
    process = machine.started()
    done = machine.run(str(BIN / "nvitop"), "--once", TERM="xterm", COLUMNS="120", LINES="40")
    assert done.returncode == 0, done.stderr
    assert "Driver Version: 515.86.01" in done.stdout
    assert f"{CONTEXT_MIB}" in done.stdout
    assert str(process.pid) in done.stdout
