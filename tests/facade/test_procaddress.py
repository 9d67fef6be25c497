"""cuGetProcAddress and cuGetExportTable: for every name, version and flag the form that the driver means, and ours."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.building import ROOT
from tests.facade.conftest import PRELUDE, MakeContainer
from tests.facade.driver_libraries import generate
from tests.facade.new_driver import on_new_driver

# Prints for each question what the driver and the facade answer: result, status, and the function's name and file.
ASK = """
import ctypes, json, sys
class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
dladdr = ctypes.CDLL(None).dladdr
def name_of(function):
    info = Info()
    if not function or not dladdr(ctypes.c_void_p(function), ctypes.byref(info)):
        return None, None
    assert info.at == function, info.name
    return info.name.decode(), info.file.decode()
def ask(library, symbol, version, flags, second):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    arguments = [symbol.encode(), ctypes.byref(function), version, ctypes.c_uint64(flags)]
    if second:
        result = library.cuGetProcAddress_v2(*arguments, ctypes.byref(status))
    else:
        result = library.cuGetProcAddress(*arguments)
    return result, status.value, *name_of(function.value)
facade, driver = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(sys.argv[1])
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps([question, ask(driver, *question), ask(facade, *question)]))
"""
PER_THREAD, OWN, LATEST = 7000, 11070, 99000
"""Versions: of the first streams per thread, of the simulated driver, and of no driver."""


def questions() -> list[tuple[str, int, int, bool]]:
    """Every name that the simulated driver or the table knows, at every version at which anything changes."""
    entries = re.findall(
        r"^ENTRY(?:_PER_THREAD)?\((\w+), (\d+), (\w+)",
        (ROOT / "lab/native/simgpu/cuda/entry_points.def").read_text(),
        re.M,
    )
    classes = generate.read_classes("cuda")
    names = {re.sub(r"(_v\d)?(_pts[zd])?$", "", name) for name in classes} | {base for base, _, _ in entries}
    changes: dict[str, set[int]] = {
        name: {0, PER_THREAD - 1, PER_THREAD, OWN, OWN + 10, generate.reviewed("cuda"), LATEST} for name in names
    }
    for base, version, _ in entries:
        changes[base] |= {int(version) - 1, int(version)}
    asked = product((0, 1, 2, 3), (False, True))
    return [(name, v, *how) for how in asked for name in sorted(names) for v in sorted(changes[name])]


def test_each_answer_is_the_drivers_and_each_replaced_function_is_ours(container: MakeContainer) -> None:
    asked = questions()
    driver = str(simgpu.library("libcuda.so.1"))
    done = subprocess.run(
        [sys.executable, "-c", ASK, driver],
        input="\n".join(json.dumps(question) for question in asked),
        env=container().environment(),
        text=True,
        capture_output=True,
        check=True,
        timeout=120,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked) > 10_000
    kinds = {name: kind for name, (kind, _) in generate.read_classes("cuda").items()}
    found = set()
    for question, (result, status, name, _), ours in answers:
        assert ours[:3] == [result, status, name], question
        if name is not None:
            found.add(name)
            replaced = generate.MACROS[kinds[name]] != "PASS"
            assert ("/simgpu/" not in ours[3]) == replaced, (question, ours)
    assert {"cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuLaunchKernel_ptsz", "cuCtxCreate_v3"} <= found


NEWER = """
cuda.cuGetProcAddress_v2.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p]
def ask(symbol, version):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    code = cuda.cuGetProcAddress_v2(symbol, ctypes.byref(function), version, 0, ctypes.byref(status))
    if function.value is None:
        return code, status.value
    newer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(function.value)
    return code, status.value, newer(0) == 4711
cuda.cuInit(0)
"""


@pytest.mark.parametrize("result", [0, 500])
def test_unreviewed_functions_are_absent_as_this_driver_says_it(result: int, tmp_path: Path) -> None:
    asked = '(b"cuBrandNew", 14000), (b"cuMemAlloc", 14000), (b"cuNothing", 14000), (b"cuBrandNew", 13000)'
    answers = on_new_driver(tmp_path, f"{NEWER}print(*(ask(*q) for q in ({asked})))", f"-DABSENT={result}")
    assert answers == [f"({result}, 1) ({result}, 1) ({result}, 1) ({result}, 2)"]


def test_without_a_driver_a_name_is_absent_as_the_headers_say(container: MakeContainer) -> None:
    box = container()
    (box.folder / "limits").unlink()
    script = """
function, status = ctypes.c_void_p(1), ctypes.c_int(-1)
second = cuda.cuGetProcAddress_v2(b"cuNothing", ctypes.byref(function), 11070, ctypes.c_uint64(), ctypes.byref(status))
first = cuda.cuGetProcAddress(b"cuNothing", ctypes.byref(function), 11070, ctypes.c_uint64())
print(second, first, function.value, status.value)
"""
    assert box.run(sys.executable, "-c", PRELUDE + script).stdout == "0 500 None 1\n"


def test_new_forms_of_functions_that_only_pass_are_the_drivers(tmp_path: Path) -> None:
    script = NEWER + 'print(ask(b"cuMemcpyHtoD", 14000), ask(b"cuMemcpyHtoD", 13000)[:2], ask(b"", 13000)[:2])'
    assert on_new_driver(tmp_path, script) == ["(0, 0, True) (0, 0) (0, 0)"]


TABLES = """
def table(id):
    found = ctypes.POINTER(ctypes.c_void_p)()
    code = cuda.cuGetExportTable(ctypes.byref(found), bytes.fromhex(id))
    return (code, found[0], ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(found[1])) if code == 0 else (code,)
context = ctypes.c_void_p()
cuda.cuInit(0)
"""


def test_private_tables_are_the_drivers_but_for_the_one_that_makes_contexts(tmp_path: Path) -> None:
    script = (
        TABLES
        + """
print(table("6bd5fb6c5bf4e74a8987d93912fd9df9")[2](None, None, None), table("00" * 16))
size, create = table("0ca50b8c1004929a89a7d0df10e77286")[1:]
print(size, create(ctypes.addressof(context), 0, 0), context.value)
print(table("0ca50b8c1004929a89a7d0df10e77286")[0])
"""
    )
    output = on_new_driver(tmp_path, script)
    assert output[0] == "4711 (500,)" and output[1] == "16 0 8"
