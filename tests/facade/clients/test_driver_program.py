"""A C++ program with NVIDIA's own header, linked as such programs are: pools, graphs, memory of another process."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina import native
from tests.facade.clients.container import PROGRAMS, ClientContainer
from tests.facade.driver_libraries import generate, header_folders

MakeClient = Callable[..., ClientContainer]


@pytest.fixture(scope="session")
def driver_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    header, compiler = generate.newest_header("cuda", header_folders()), shutil.which("g++")
    if header is None or compiler is None:
        pytest.skip("needs g++ and the headers of CUDA")
    made = tmp_path_factory.mktemp("driver") / "driver_program"
    flags = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{header.parent}")
    command = [compiler, *flags, PROGRAMS / "driver_program.cpp", native.path("facade/libcuda.so.1"), "-o", made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("way", ["linear", "pool", "graph", "shared"])
def test_each_way_comes_to_the_limit(way: str, client: MakeClient, driver_program: Path) -> None:
    client().is_full(driver_program, "fill", way)


@pytest.mark.parametrize("cores", [30, 60])
def test_graphs_of_kernels_are_held_to_the_share(cores: int, client: MakeClient, driver_program: Path) -> None:
    client(cores=cores).is_held_to(cores, driver_program, "work")
