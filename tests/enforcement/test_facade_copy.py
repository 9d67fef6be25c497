"""The facade has the functions that the driver has, and no others."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina import native
from lamina.enforcement.facade_copy import fitted, fitted_to, functions
from lamina.errors import BadInput
from lamina_lab import simgpu
from tests.building import compile_program

FACADES = ("libcuda.so.1", "libnvidia-ml.so.1")
ADDRESSES = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
base = ctypes.cast(library.cuInit, ctypes.c_void_p).value
for name in sys.argv[2:]:
    found = hasattr(library, name)
    print(ctypes.cast(library[name], ctypes.c_void_p).value - base if found else "absent")
"""


def built(name: str = "libcuda.so.1") -> bytes:
    return native.path(f"facade/{name}").read_bytes()


def names(library: bytes) -> frozenset[str]:
    return functions(io.BytesIO(library))


def addresses(library: bytes, folder: Path, *wanted: str) -> list[str]:
    """Where a loader finds these functions, as distances from cuInit."""
    path = folder / "libcuda.so.1"
    path.write_bytes(library)
    command = [sys.executable, "-c", ADDRESSES, str(path), *wanted]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("name", FACADES)
def test_it_has_what_both_have(name: str) -> None:
    driver = (simgpu.driver_folder() / name).read_bytes()
    copy = fitted_to(built(name), simgpu.driver_folder() / name)
    assert names(copy) == names(built(name)) & names(driver)
    assert names(built(name)) - names(copy), "a simulated driver that has everything shows nothing"


def test_the_loader_finds_the_others_where_they_were(tmp_path: Path) -> None:
    lacking = {"cuMemAlloc_v2", "cuGetProcAddress_v2", "cuLaunchKernel"}
    every = sorted(names(built()))
    before = dict(zip(every, addresses(built(), tmp_path, *every), strict=True))
    after = dict(zip(every, addresses(fitted(built(), set(every) - lacking), tmp_path, *every), strict=True))
    assert {name for name in every if after[name] == "absent"} == lacking
    assert {name: after[name] for name in every if name not in lacking} == {
        name: before[name] for name in every if name not in lacking
    }


@settings(max_examples=20)
@given(st.sets(st.sampled_from(sorted(names(built())))), st.sets(st.sampled_from(sorted(names(built())))))
def test_nothing_but_the_lacking_names_changes(first: set[str], second: set[str]) -> None:
    copy = fitted(built(), first)
    assert names(copy) == first
    assert len(copy) == len(built())
    assert fitted(copy, second) == fitted(built(), first & second)
    assert fitted(built(), names(built()) | {"cuNothing"}) == built()


def test_programs_can_be_linked_with_it(tmp_path: Path) -> None:
    source = "extern int cuInit(unsigned); int main(void) { return cuInit(0) == -1; }"
    (tmp_path / "libcuda.so").write_bytes(fitted(built(), {"cuInit"}))
    (tmp_path / "program.c").write_text(source)
    command = ["cc", "program.c", "-Werror", "-L.", "-lcuda", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(57)])
def test_what_is_no_library_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match="library"):
        fitted(content, frozenset())
    with pytest.raises(BadInput, match="library"):
        names(content)


@pytest.mark.parametrize("content", [None, b"no library"])
def test_without_a_driver_that_can_be_read_it_stays_as_it_was_built(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if content is not None:
        (tmp_path / "libcuda.so.1").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert fitted_to(built(), tmp_path / "libcuda.so.1") == built()
    assert "libcuda.so.1 cannot be read" in caplog.text


def test_a_driver_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    driver = tmp_path / "libcuda.so.1"
    for name in ("cuInit", "cuDeviceGet"):
        (tmp_path / "driver.c").write_text(f"int {name}(void) {{ return 0; }}")
        compile_program(tmp_path, "new", [str(tmp_path / "driver.c")], "-shared", "-fPIC").replace(driver)
        assert names(fitted_to(built(), driver)) == {name}
