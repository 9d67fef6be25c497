"""Programs in Go that open the driver themselves, linked as usual and as one static file."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina import native
from tests.facade.clients.container import LIMIT_MIB, PROGRAMS, ClientContainer, reported

MakeClient = Callable[..., ClientContainer]
Build = Callable[..., Path]
STATIC = ("-ldflags", "-linkmode external -extldflags -static")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles the program."""
    go = shutil.which("go", path=Path(sys.executable).parent) or shutil.which("go")
    if go is None or shutil.which("gcc") is None:
        pytest.skip("needs gcc and Go; install Go with pip install '.[clients]'")
    folder = tmp_path_factory.mktemp("go")
    variables = {"PATH": f"{Path(go).parent}:/usr/bin:/bin", "HOME": str(folder), "CGO_ENABLED": "1"}

    def compiled(*options: str) -> Path:
        made = folder / f"program-{len(options)}"
        command = [go, "build", *options, "-o", made, PROGRAMS / "go_program.go"]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made

    return compiled


def test_a_go_program_comes_to_the_limit(client: MakeClient, build: Build) -> None:
    client().is_full(build(), "fill")


def test_a_go_program_sees_the_limit(client: MakeClient, build: Build) -> None:
    assert reported(client(), build(), "shows").split() == [str(LIMIT_MIB)]


def test_a_static_go_program_sees_the_limit(client: MakeClient, build: Build) -> None:
    """It ignores preloading, and finds the facade where a container has the driver."""
    found = f"LD_LIBRARY_PATH={native.path('facade/libnvidia-ml.so.1').parent}"
    assert reported(client(), "env", found, build(*STATIC), "shows").split() == [str(LIMIT_MIB)]
