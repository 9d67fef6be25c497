"""A facade of an earlier CUDA in front of a later driver: what it does not know is absent, and programs go on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.facade.conftest import MIB, PRELUDE, Container, make_container
from tests.facade.driver_libraries import exported, generate
from tests.facade.old_table import build_old_facade, later, versions

REVIEWED, DRIVER = 12_040, "13.0"

ASK = """
import json
names = json.loads(input())
def ask(symbol):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    out = ctypes.byref(function)
    second = cuda.cuGetProcAddress_v2(symbol.encode(), out, 13000, ctypes.c_uint64(), ctypes.byref(status))
    found = function.value is not None
    first = cuda.cuGetProcAddress(symbol.encode(), out, 13000, ctypes.c_uint64())
    return [second, status.value, found, first, hasattr(cuda, symbol)]
print(json.dumps({name: ask(name) for name in names}))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_old_facade(tmp_path_factory.mktemp("old"), REVIEWED)


class OldContainer(Container):
    """A container on a later driver whose facade is of an earlier CUDA."""

    library: Path

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**more) | {"LD_PRELOAD": str(self.library)}


@pytest.fixture
def box(library: Path, tmp_path: Path) -> OldContainer:
    made = make_container(tmp_path, 2000, cores=10)
    machine = simgpu.Machine(gpus=made.machine.gpus, seed=made.machine.seed, driver="580.95.05", cuda=DRIVER)
    simgpu.write(machine, tmp_path / "machine")
    assert place(machine)[0].uuid == made.uuids[0]
    old = OldContainer(made.folder, machine, made.limits)
    old.library = library
    return old


def test_the_table_lacks_the_later_names(library: Path) -> None:
    assert exported(library) == set(generate.read_classes("cuda")) - later(REVIEWED)
    assert {"cuStreamGetDevice", "cuCtxCreate_v4", "cuEventElapsedTime_v2"} <= later(REVIEWED)


def test_later_names_are_absent_as_names_that_no_driver_has(box: OldContainer) -> None:
    whole = {name for name in later(REVIEWED) if versions()[name] <= 13_000 and "_" not in name}
    known = {name.partition("_")[0] for name in generate.read_classes("cuda").keys() - later(REVIEWED)}
    asked = sorted({"cuNothing", *whole - known})
    assert "cuStreamGetDevice" in asked
    done = box.run(sys.executable, "-c", PRELUDE + ASK, stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [0, 1, False, 500, False] for name in asked}


def test_later_forms_of_replaced_functions_are_absent_and_earlier_ones_are_not(box: OldContainer) -> None:
    script = """
def ask(symbol, version):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    arguments = symbol, ctypes.byref(function), version, ctypes.c_uint64(), ctypes.byref(status)
    return cuda.cuGetProcAddress_v2(*arguments), status.value, function.value is not None
print(ask(b"cuCtxCreate", 12050), ask(b"cuCtxCreate", 12040), ask(b"cuMemAlloc", 13000))
"""
    done = box.run(sys.executable, "-c", PRELUDE + script)
    assert done.stdout == "(0, 1, False) (0, 0, True) (0, 0, True)\n", done.stderr


def test_a_program_goes_on_under_its_limits(box: OldContainer, programs: dict[str, Path]) -> None:
    took = box.run(sys.executable, "-c", PRELUDE + "print(begin(), take(1600), take(200), free())")
    assert took.stdout.startswith("(0, 0, 0) 0 2 (0, "), took.stdout + took.stderr
    command = [programs["launching"], "procaddress", "plain", "2000000", "60"]
    done = subprocess.run(command, env=box.environment(), capture_output=True, text=True, timeout=120, check=False)
    assert int(done.stdout.split()[0]) > 600, done.stderr
    device = box.usage().devices[0]
    assert device.waited_ns > 0 and device.peak <= 2000 * MIB
