"""The review of a header says for each unclassified function what programs get."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.building import ROOT

CUDA = """#define CUDAAPI
typedef int CUresult;
CUresult CUDAAPI cuMemAlloc_v2(int a);
CUresult CUDAAPI cuMemAlloc_v3(int a);
CUresult CUDAAPI cuMemcpyHtoD_v3(int a);
CUresult CUDAAPI cuBrandNew(int a);
"""
NVML = "typedef int nvmlReturn_t;\nnvmlReturn_t nvmlInit_v2(void);\nnvmlReturn_t nvmlInit_v3(void);\n"


def review(*headers: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / "native/facade/review.py", *headers]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_each_unclassified_function_has_its_consequence(tmp_path: Path) -> None:
    cuda, nvml = written(tmp_path, "cuda.h", CUDA), written(tmp_path, "nvml.h", NVML)
    done = review(cuda, nvml)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{cuda}: 4 functions, 3 without a class in cuda.classes",
        "  cuBrandNew: withheld: programs do not find it",
        "  cuMemAlloc_v3: withheld: programs that ask for this form do not find it; there is cuMemAlloc, cuMemAlloc_v2",
        "  cuMemcpyHtoD_v3: passed on by cuGetProcAddress, as the other forms are; dlsym does not find it",
        f"{nvml}: 2 functions, 1 without a class in nvml.classes",
        "  nvmlInit_v3: withheld: programs do not find it",
    ]


def test_a_reviewed_header_has_one_line(tmp_path: Path) -> None:
    text = CUDA.replace("cuMemAlloc_v3", "cuMemFree_v2").replace("HtoD_v3", "HtoD_v2").replace("BrandNew", "Init")
    done = review(written(tmp_path, "cuda.h", text))
    assert done.returncode == 0 and done.stdout.endswith(": 4 functions, 0 without a class in cuda.classes\n")


@pytest.mark.parametrize("text", [None, "", "int main(void);\n"])
def test_a_file_that_is_no_header_of_the_driver_is_refused(text: str | None, tmp_path: Path) -> None:
    header = tmp_path / "cuda.h" if text is None else written(tmp_path, "cuda.h", text)
    done = review(header)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{header} declares no function of the driver; name a cuda.h or nvml.h of a CUDA toolkit\n"
    assert review().returncode == 2
