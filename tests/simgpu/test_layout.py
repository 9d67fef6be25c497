"""The C and Python sides agree on the machine file and on the driver's structures."""

import ctypes
import subprocess
from pathlib import Path

from lamina_lab.simgpu import layout
from tests.building import compile_program


def test_python_and_c_have_the_same_layout(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "layout", ["native/tests/simgpu_layout.c"])
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    structures = {s.__name__.removesuffix("Record"): s for s in layout.STRUCTURES}
    fields_seen = 0
    for line in printed:
        name, *numbers = line.split()
        structure, _, field = name.partition(".")
        if field:
            descriptor = getattr(structures[structure], field)
            assert [descriptor.offset, descriptor.size] == [int(n) for n in numbers], name
            fields_seen += 1
        elif structure in structures:
            assert ctypes.sizeof(structures[structure]) == int(numbers[0]), name
        else:
            assert getattr(layout, name) == int(numbers[0]), name
    named = [f for s in layout.STRUCTURES for f in s._fields_ if f[0] not in ("reserved", "padding")]
    assert fields_seen == len(named)


def test_the_structures_of_cuda_have_the_sizes_that_programs_are_compiled_with(tmp_path: Path) -> None:
    compile_program(tmp_path, "abi", ["native/tests/simgpu_abi.c"])
