"""The mounts and the hook of the agent's CDI specs with the container runtimes that clusters have."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.facade import nvidia_toolkit, oci
from tests.facade.conftest import PRELUDE
from tests.facade.image_drivers import image_library, node
from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER, VERSION

pytestmark = pytest.mark.root

RUNTIMES = ("runc", "crun")
LOADED = "sha256sum $(ldconfig -p | sed -n 's/.*libcuda.so.* => //p')"
"""What the loader's cache has for the driver."""
DRIVER = "/run/lamina-driver/libcuda.so.1"


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    return oci.runtime(request.param)


def test_the_driver_is_the_facade(runtime: str, tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    for library in ("libcuda.so", "libnvidia-ml.so"):
        ours = f"/usr/local/lamina/{box.libraries.version}/{library}.1"
        done = oci.run(runtime, box, "cmp", f"{LIBRARY_FOLDER}/{library}.{VERSION}", ours)
        assert done.returncode == 0, done.stdout + done.stderr


def test_memory_is_limited(runtime: str, tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    script = f"{PRELUDE}\nbegin()\nprint(take(500), take(500), free())"
    done = oci.run(runtime, box, sys.executable, "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 2 (0, "), done.stdout


def test_a_newer_driver_of_the_image_is_below_the_facade(runtime: str, tmp_path: Path) -> None:
    box = node(tmp_path)
    path = image_library(box, "580.65.06")
    for covered, by in ((path, box.libraries.folder / "libcuda.so.1"), (DRIVER, tmp_path / "libcuda.so.580.65.06")):
        done = oci.run(runtime, box, "cmp", covered, str(by))
        assert done.returncode == 0, done.stdout + done.stderr


COMPILERS = {"static": ("gcc", "-static"), "musl": ("musl-gcc",), "static, musl": ("musl-gcc", "-static")}


@pytest.mark.parametrize("kind", COMPILERS)
def test_programs_without_the_nodes_c_library_start(kind: str, runtime: str, tmp_path: Path) -> None:
    """As in images of Alpine and of programs in Go: they have no use for the list of preloaded libraries."""
    compiler, *options = COMPILERS[kind]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}; Debian's package is musl-tools")
    (source := tmp_path / "program.c").write_text('#include <stdio.h>\nint main(void) { return puts("here") < 0; }\n')
    program = tmp_path / "program"
    subprocess.run([compiler, *options, "-o", program, source], check=True)
    done = oci.run(runtime, Mounted(tmp_path, 1000), str(program))
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr


def test_without_the_facade_on_the_node_a_container_does_not_start(runtime: str, tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    box.edits["hooks"][0]["args"] = ["lamina-cover", str(tmp_path / "gone")]
    done = oci.run(runtime, box, "true")
    # crun does not show what a hook says.
    said = "cannot put the facade over" if Path(runtime).name == "runc" else "error executing hook"
    assert done.returncode != 0 and said in done.stderr


@pytest.mark.parametrize("ours_last", [True, False], ids=["ours last", "ours first"])
@pytest.mark.parametrize("image", [None, "580.65.06"], ids=["no driver in the image", "a newer driver in the image"])
def test_nvidias_container_toolkit_brings_no_way_around(
    image: str | None, ours_last: bool, runtime: str, tmp_path: Path
) -> None:
    """Its hooks link the driver's files and write the loader's cache, in which a newer driver of the image is first."""
    box = node(tmp_path, simgpu.Machine(gpus=()).driver)
    if image is not None:
        image_library(box, image, "/usr/local/cuda/compat")
    toolkit = nvidia_toolkit.generated(box)
    script = f"{PRELUDE}\nbegin()\nprint(take(500), take(500), free())"
    done = oci.run(runtime, box, sys.executable, "-c", script, toolkit=toolkit, ours_last=ours_last)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 2 (0, "), done.stdout
    done = oci.run(runtime, box, "sh", "-c", LOADED, toolkit=toolkit, ours_last=ours_last)
    assert done.returncode == 0 and done.stdout, done.stderr
    facade = (box.libraries.folder / "libcuda.so.1").read_bytes()
    digest = hashlib.sha256(facade).hexdigest()
    assert {line.split()[0] for line in done.stdout.splitlines()} == {digest}
