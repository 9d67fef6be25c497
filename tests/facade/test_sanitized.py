"""The whole facade under AddressSanitizer and UndefinedBehaviorSanitizer, with the programs of the other tests."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.building import ROOT, SANITIZED
from tests.facade.conftest import MakeContainer

FACADE = ROOT / "native/facade"


def sources() -> list[str]:
    """The files that make up libcuda.so.1, as the build has them."""
    lists = re.findall(r"^(facade_\w+) = .*?files\((.*?)\)$", (FACADE / "meson.build").read_text(), re.S | re.M)
    return [file for name, files in lists if name != "facade_nvml" for file in re.findall(r"'([\w.]+\.c)'", files)]


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("sanitized") / "libcuda.so.1"
    command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-fvisibility=hidden", *SANITIZED]
    command += ["-I../include", "-include", "old_glibc.h", '-DTABLE="generated/cuda_table.h"', "-DFORBIDDEN=801"]
    command += [*sources(), "trampoline.S", "-o", str(library), "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic"]
    command += ["-Wl,--version-script=generated/cuda.map", "-ldl", "-lpthread"]
    done = subprocess.run(command, cwd=FACADE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    runtime = Path(found.strip())
    if not runtime.is_absolute():
        pytest.skip("this compiler has no AddressSanitizer as a library")
    return f"{runtime.resolve()}:{library}"


@pytest.mark.parametrize(
    ("program", "arguments"), [("threads", ("4", "500")), ("killed", ("40", "3")), ("crowd", ("turn", "60"))]
)
def test_nothing_is_found(
    program: str, arguments: tuple[str, ...], preload: str, container: MakeContainer, programs: dict[str, Path]
) -> None:
    environment = container(303 + 1700).environment() | {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [programs[program], *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    # Before the last line, processes that are killed may say that together they asked for more than the limit.
    said = done.stdout.splitlines()[-1:]
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr[-3000:]
    assert said and said[0].startswith("ok"), done.stdout + done.stderr[-3000:]
