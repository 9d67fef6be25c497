"""A driver that limits cgroups: memory of all their processes together, set through NVML."""

import sys
from pathlib import Path

import pytest

from tests.simgpu.machines import CONTEXT_MIB, Machine

NEW = 'driver: "615.10"\ngpus:\n- {model: V100-SXM2-16GB, count: 2}\n'
OLD = 'driver: "610.99"\ngpus:\n- {model: V100-SXM2-16GB, count: 2}\n'
PORT = """
import asyncio, sys
from pathlib import Path
from lamina.ports.nvml import DriverNvml
from lamina.errors import Outside
async def main():
    nvml = DriverNvml()
    uuid = (await nvml.gpus())[0].uuid
    try:
        print(await nvml.limits_memory(uuid, Path(sys.argv[1])))
        for limit in sys.argv[2:]:
            await nvml.limit_memory(uuid, Path(sys.argv[1]), int(limit) << 20 if limit != "none" else None)
            print("set")
    except Outside as error:
        print(error)
asyncio.run(main())
"""


@pytest.fixture
def machine(tmp_path: Path):
    made = Machine(tmp_path / "machine", NEW)
    yield made
    made.close()


def port(machine: Machine, *arguments: object) -> list[str]:
    done = machine.run(sys.executable, "-c", PORT, *map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_processes_of_a_cgroup_hold_no_more_than_its_limit(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    assert port(machine, tmp_path / "one", 1000) == ["True", "set"]
    first, second = (machine.started(SIMGPU_CGROUP=str(tmp_path / "one")) for _ in range(2))
    other = machine.started(SIMGPU_CGROUP=str(tmp_path / "two"))
    assert other("alloc(4000)[0]") == 0
    assert first("alloc(300)[0]") == 0 and second("alloc(100)[0]") == 2
    assert first("used()") == 2 * CONTEXT_MIB + 300
    first.kill()
    assert second("alloc(600)[0]") == 0 and second("alloc(200)[0]") == 2
    assert port(machine, tmp_path / "one", "none") == ["True", "set"]
    assert second("alloc(2000)[0]") == 0


def test_a_pool_is_held_too(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    port(machine, tmp_path / "one", 1000)
    process = machine.started(SIMGPU_CGROUP=str(tmp_path / "one"))
    assert process("alloc(600, 'cuMemAllocAsync')[0]") == 0
    assert process("alloc(200, 'cuMemAllocAsync')[0]") == 2


def test_what_cannot_be_set_is_refused(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert "Invalid Argument" in port(machine, tmp_path / "one", 16161)[1]
    assert port(machine, tmp_path / "missing", 1000)[0] == "False"


def test_an_older_driver_limits_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine", OLD)
    try:
        assert port(machine, tmp_path, 1000)[0] == "False"
    finally:
        machine.close()
