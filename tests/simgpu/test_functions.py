"""Kernels by name: a module has those of its image, as NVIDIA's driver reads them."""

import struct
from pathlib import Path

import pytest

from tests.simgpu.machines import Machine

NOT_FOUND, FILE_NOT_FOUND, INVALID_VALUE = 500, 301, 1
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry first(.param .u64 a) { ret; }
.func helper() { ret; }
.weak .entry _Z6secondPf() { ret; }
"""
ENTRY, FUNCTION, GLOBAL = 0x10, 2, 1


def cubin(*symbols: tuple[bytes, int]) -> bytes:
    """An ELF image for a GPU, with functions of these names and what `st_other` of each is."""
    names, table = b"\0", bytes(24)
    for name, other in symbols:
        table += struct.pack("<IBBHQQ", len(names), GLOBAL << 4 | FUNCTION, other, 1, 0, 0)
        names += name + b"\0"
    sections = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(table), 1, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(table), len(names), 0, 0, 1, 0)
    at = 64 + len(table) + len(names)
    header = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, 2, 0)
    return header + table + names + sections


@pytest.mark.parametrize(
    ("image", "there", "absent"),
    [
        (PTX, (b"first", b"_Z6secondPf"), (b"helper", b"fir", b"firs", b"")),
        (cubin((b"first", ENTRY), (b"helper", 0), (b"second", ENTRY)), (b"first", b"second"), (b"helper", b"third")),
        (b"// with a comment\n/* and another */ " + PTX, (b"first",), (b"third",)),
        (b"simgpu", (b"spin", b"anything"), ()),
    ],
)
def test_a_module_has_the_kernels_of_its_image(
    machine: Machine, image: bytes, there: tuple[bytes, ...], absent: tuple[bytes, ...]
) -> None:
    process = machine.started()
    for how in ("module_of", "library_of"):
        assert process(f"[{how}({image!r}, n) for n in {there!r}]") == [0] * len(there)
        assert process(f"[{how}({image!r}, n) for n in {absent!r}]") == [NOT_FOUND] * len(absent)


@pytest.mark.parametrize("image", [b"", b"nonsense", b"simgpus", b"// .version 7.0", b"/* .version 7.0"])
def test_what_is_no_code_is_refused(machine: Machine, image: bytes) -> None:
    process = machine.started()
    assert [process(f"{how}({image!r}, b'first')") for how in ("module_of", "library_of")] == [200, 200]


@pytest.mark.parametrize("cut", [10, 63, 64])
def test_an_image_that_ends_in_its_header_is_not_read_further(machine: Machine, cut: int) -> None:
    assert machine.started()(f"module_of({cubin((b'first', ENTRY))[:cut] + bytes(64)!r}, b'first')") in (0, NOT_FOUND)


def test_code_is_read_from_files(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "code.ptx").write_bytes(PTX)
    process = machine.started()
    assert process(f"file_of({str(tmp_path / 'code.ptx')!r}, b'first')") == 0
    assert process(f"file_of({str(tmp_path / 'code.ptx')!r}, b'third')") == NOT_FOUND
    assert process(f"file_of({str(tmp_path / 'absent.ptx')!r}, b'first')") == FILE_NOT_FOUND


def test_functions_are_of_their_cards_architecture(tmp_path: Path) -> None:
    for model, architecture in (("V100-SXM2-16GB", 70), ("A100-SXM4-40GB", 80), ("H100-SXM5-80GB", 90)):
        machine = Machine(tmp_path / model, f"gpus: [{{model: {model}}}]\n")
        ask = "(lambda v, f: [cu.cuFuncGetAttribute(byref(v), a, f) or v.value for a in (5, 6)])(c_int(), function())"
        assert machine.started()(ask) == [architecture] * 2
        machine.close()


def test_the_ptx_version_of_a_function_is_its_target(machine: Machine) -> None:
    loaded = f"[cu.cuModuleLoadData(byref(m), {PTX!r}), cu.cuModuleGetFunction(byref(f), m, b'first')]"
    asked = f"(lambda m, f, v: {loaded} + [cu.cuFuncGetAttribute(byref(v), 5, f), v.value])"
    ask = f"{asked}(c_void_p(), c_void_p(), c_int())"
    assert machine.started()(ask) == [0, 0, 0, 70]
