"""Every way around the facade that we know, tried; docs/concepts/security.md has the outcomes, and is held to them.

Each way tries to get more memory than the limit of 1000 MiB. In a plain process the facade is only preloaded; in a
container it is preloaded by the loader's own list and in the driver's place.
"""

import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lamina import native
from lamina.enforcement import DeviceLimit, Limits, read_usage, write_container
from lamina.errors import BadInput
from lamina_lab import simgpu
from tests.building import ROOT, compile_program, needs_static_libc
from tests.facade.conftest import MIB, Container, MakeContainer
from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER

PAGE = (ROOT / "docs/concepts/security.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (held|escapes) \| (held|escapes) \|$", PAGE, re.M)


@dataclass
class Place:
    """Where the ways are tried. `driver` is the driver's file as programs know it, `ours` where the facade finds it."""

    run: Callable[..., subprocess.CompletedProcess[str]]
    programs: Path
    machine: Path
    driver: str
    ours: str
    bigger: Path
    spare: Path
    search: dict[str, str]

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        return self.run("sh", "-c", text)

    def clean(self) -> str:
        """The variables without which there would be no machine to escape to."""
        variables = {"SIMGPU_MACHINE": str(self.machine), **self.search}
        return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


Way = Callable[[Place], subprocess.CompletedProcess[str]]


def plain(*arguments: str) -> Way:
    return lambda place: place.run(place.programs / "plain", *arguments)


def linked(*arguments: str) -> Way:
    return lambda place: place.run(place.programs / "linked", *arguments)


def shell(text: str) -> Way:
    """A command in which names stand in braces."""
    return lambda place: place.shell(
        text.format(
            plain=place.programs / "plain",
            linked=place.programs / "linked",
            programs=place.programs,
            driver=place.driver,
            ours=place.ours,
            clean=place.clean(),
            bigger=place.bigger,
            spare=place.spare,
        )
    )


WAYS: dict[str, Way] = {
    "linked to libcuda": linked("linked"),
    "`dlopen` by name": plain("name"),
    "`dlopen` of `libcuda.so`": plain("path", "libcuda.so"),
    "`dlopen` by the driver's absolute path": lambda place: place.run(place.programs / "plain", "path", place.driver),
    "`dlopen` of a copy of that file": shell("cp {driver} /tmp/copy.$$ && {plain} path /tmp/copy.$$; rm /tmp/copy.$$"),
    "`dlsym(RTLD_DEFAULT)`": linked("default"),
    "`dlsym(RTLD_NEXT)`": linked("next"),
    "the loader's own `dlsym`, by `dlvsym`": plain("real dlsym"),
    "`dlopen` with `RTLD_DEEPBIND`": plain("deepbind"),
    "a plug-in linked to libcuda, opened with `RTLD_DEEPBIND`": shell("{plain} plugin {programs}/plugin.so"),
    "`dlmopen` into a new namespace": plain("dlmopen"),
    "`cuGetProcAddress`": plain("procaddress 1"),
    "`cuGetProcAddress_v2`": plain("procaddress 2"),
    "`_ptsz` functions, linked": linked("per thread"),
    "a child by `fork`": plain("fork"),
    "a dynamic program with a static stub archive": shell("{programs}/stub linked"),
    "reading the symbol table of the opened library": plain("tables"),
    "`LD_LIBRARY_PATH` to the driver": lambda place: place.run(
        place.programs / "linked", "linked", LD_LIBRARY_PATH=str(Path(place.driver).parent)
    ),
    "`unset LD_PRELOAD`, then another program": shell("unset LD_PRELOAD; exec {plain} name"),
    "`env -i`": shell("env -i {clean} {plain} name"),
    "another user's login, as by `su` or `ssh`": shell(
        "setpriv --reuid 65534 --regid 65534 --clear-groups env -i {clean} {plain} name"
    ),
    "a setuid program": shell(
        "cp {plain} /tmp/suid.$$ && chmod 4755 /tmp/suid.$$ &&"
        " setpriv --reuid 65534 --regid 65534 --clear-groups env {clean} /tmp/suid.$$ name; rm /tmp/suid.$$"
    ),
    "own `LAMINA_DIR` with higher limits": shell("LAMINA_DIR={bigger} {plain} name"),
    "raising the limits file": plain("raise limits"),
    "writing garbage into the usage file": plain("garble usage"),
    "truncating the usage file": plain("truncate usage"),
    "deleting the usage file": plain("delete usage"),
    "replacing the usage file by an unused one": shell("{plain} 'replace usage' {spare}"),
    "writing lower figures into the usage file": plain("forge usage"),
    "`LD_AUDIT` that leads the loader elsewhere": shell(
        "LD_AUDIT={programs}/audit.so ESCAPE_TO={ours} {linked} linked"
    ),
    "`dlopen` of the file where the facade finds the driver": shell("{plain} path {ours}"),
    "own copy of the driver, brought along": shell("cp {ours} /tmp/own.$$ && {plain} path /tmp/own.$$; rm /tmp/own.$$"),
    "calling the driver that the facade loaded, found in the loader's list": plain("last object"),
}
AS_ROOT = {"another user's login, as by `su` or `ssh`", "a setuid program"}


@pytest.fixture(scope="session")
def escapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("escapes")
    folder.chmod(0o755)
    source, limits = "native/tests/escapes.c", "native/facade/shared/limits.c"
    finds, library = "native/tests/facade_linked.c", str(native.path("facade/libcuda.so.1"))
    compile_program(folder, "plain", [source, limits])
    compile_program(folder, "linked", [source, limits, finds, library], "-DLINKED")
    compile_program(folder, "plugin.so", [finds, library], "-shared", "-fPIC")
    compile_program(folder, "audit.so", ["native/tests/audit.c"], "-shared", "-fPIC")
    compile_program(folder, "stub", [source, limits, "native/tests/stub.c"], "-DLINKED")
    return folder


def prepare(box_folder: Path, uuids: tuple[str, ...]) -> None:
    """Limits ten times as high, and a usage file that no one has used."""
    bigger = Limits(devices=tuple(DeviceLimit(uuid=uuid, memory_bytes=10_000 * MIB) for uuid in uuids))
    for name in ("bigger", "spare"):
        (box_folder / name).mkdir()
        write_container(box_folder / name, bigger)


def plain_process(box: Container, programs: Path) -> Place:
    prepare(box.folder, tuple(box.uuids))
    driver = simgpu.library("libcuda.so.1")
    search = {"LD_LIBRARY_PATH": str(driver.parent)}

    def run(*command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return box.run(*command, **{**search, **more})

    spare = box.folder / "spare/usage"
    return Place(run, programs, box.folder / "machine", str(driver), str(driver), box.folder / "bigger", spare, search)


def in_container(box: Mounted, programs: Path) -> Place:
    prepare(box.host, (box.gpu,))
    box.show(programs, "/run/programs")
    box.show(box.host, "/run/node", writable=True)
    node = Path("/run/node")
    driver = f"{LIBRARY_FOLDER}/libcuda.so.1"
    return Place(
        lambda *command, **more: box.run(*command, **{"SIMGPU_MACHINE": str(node / "machine"), **more}),
        Path("/run/programs"),
        node / "machine",
        driver,
        "/run/lamina-driver/libcuda.so.1",
        node / "bigger",
        node / "spare/usage",
        {},
    )


def output(done: subprocess.CompletedProcess[str]) -> str:
    words = done.stdout.split()
    assert words and words[-1] in ("held", "escapes"), f"{done.args}: {done.stdout}{done.stderr}"
    return words[-1]


def test_the_table_lists_the_same_escapes() -> None:
    assert [row[0] for row in ROWS] == list(WAYS)


@pytest.mark.parametrize(("way", "expected"), [(way, outcome) for way, outcome, _ in ROWS])
def test_in_a_plain_process(way: str, expected: str, container: MakeContainer, escapes: Path) -> None:
    if way in AS_ROOT:
        pytest.skip("a change of user takes LD_PRELOAD away, which `env -i` shows; the container test does it")
    done = WAYS[way](plain_process(container(1000), escapes))
    assert output(done) == expected, done.stderr


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    """A container whose files any user may reach."""
    tmp_path.chmod(0o755)
    (tmp_path / "node").mkdir()
    box = Mounted(tmp_path / "node", 1000)
    (tmp_path / "node/machine").chmod(0o666)
    return box


@pytest.mark.parametrize(
    ("way", "expected"),
    [pytest.param(way, outcome, marks=[pytest.mark.root] * (way in AS_ROOT)) for way, _, outcome in ROWS],
)
def test_in_a_container(way: str, expected: str, mounted: Mounted, escapes: Path) -> None:
    done = WAYS[way](in_container(mounted, escapes))
    assert output(done) == expected, done.stderr


def test_a_static_program_in_a_container_gets_nothing(mounted: Mounted, escapes: Path) -> None:
    """It finds the facade without a preload; libraries with thread-local storage do not work in it."""
    needs_static_libc()
    compile_program(
        escapes, "static", ["native/tests/escapes.c", "native/facade/shared/limits.c"], "-DSTATIC", "-static"
    )
    done = in_container(mounted, escapes).run("/run/programs/static", "name")
    assert "escapes" not in done.stdout and "not found" not in done.stderr


def test_a_truncated_usage_file_affects_no_other_container(mounted: Mounted, escapes: Path, tmp_path: Path) -> None:
    """The container that did it gets no GPU any more; the node reads the file without mapping it."""
    place = in_container(mounted, escapes)
    assert output(place.run(place.programs / "plain", "truncate usage")) == "held"
    assert (mounted.folder / "usage").stat().st_size == 0
    with pytest.raises(BadInput):
        read_usage(mounted.folder / "usage")
    done = place.run(place.programs / "plain", "name")
    assert output(done) == "held" and "truncated" in done.stderr
