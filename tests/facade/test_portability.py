"""The preload harms no program of a container, and the libraries are built for what containers and nodes are."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lamina import native
from tests.building import compile_program, needs_static_libc
from tests.facade.driver_libraries import exported, reported
from tests.facade.mounted import Mounted

HELLO = '#include <stdio.h>\nint main(void) { return puts("fine") < 0; }\n'
OPENMP = """#include <stdio.h>
int main(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
    return puts(sum == 499500 ? "fine" : "wrong") < 0;
}
"""
# A program without a C library, for machines that have none for 32 bits.
BARE = """
void _start(void)
{
    static const char text[] = "fine\\n";
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(4), "b"(1), "c"(text), "d"(5) : "memory");
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(1), "b"(0));
}
"""


def compiled(folder: Path, source: str, *flags: str) -> Path:
    """The program of a source, or a skipped test where this machine cannot build such programs."""
    (folder / "program.c").write_text(source)
    command = [os.environ.get("CC", "cc"), folder / "program.c", "-o", folder / "program", *flags]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this machine cannot build programs with {' '.join(flags)}")
    return folder / "program"


@pytest.fixture
def box(tmp_path: Path) -> Mounted:
    tmp_path.chmod(0o755)
    (tmp_path / "node").mkdir()
    (tmp_path / "programs").mkdir()
    box = Mounted(tmp_path / "node", 1000)
    box.show(tmp_path / "programs", "/run/programs")
    return box


def runs_quietly(box: Mounted, *command: str) -> None:
    done = box.run(*command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


KINDS = {
    "dynamic": (HELLO, ()),
    "static": (HELLO, ("-static",)),
    "static at any address": (HELLO, ("-static-pie",)),
    "OpenMP": (OPENMP, ("-fopenmp",)),
    "32 bits, static": (BARE, ("-m32", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_programs_without_cuda_run_and_nothing_is_printed(kind: str, box: Mounted, tmp_path: Path) -> None:
    source, flags = KINDS[kind]
    compiled(tmp_path / "programs", source, *flags)
    runs_quietly(box, "/run/programs/program")


@pytest.mark.root
def test_a_setuid_program_runs_and_nothing_is_printed(box: Mounted, tmp_path: Path) -> None:
    compiled(tmp_path / "programs", HELLO)
    script = "cp /run/programs/program /usr/local/setuid && chmod 4755 /usr/local/setuid && "
    runs_quietly(box, "sh", "-c", script + "setpriv --reuid 65534 --regid 65534 --clear-groups /usr/local/setuid")


def test_a_musl_program_runs_and_nothing_is_printed(box: Mounted, tmp_path: Path) -> None:
    """musl's loader knows no list of preloads."""
    loaders = sorted(Path("/lib").glob("ld-musl-*.so.1"))
    if not loaders:
        pytest.skip("this machine has no musl")
    source = """
int puts(const char *);
_Noreturn void exit(int);
#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
void _start(void) { exit(puts("fine") < 0); }
"""
    flags = ("-nostdlib", "-fno-builtin", "-no-pie", f"-Wl,--dynamic-linker={loaders[0]}", str(loaders[0]))
    compiled(tmp_path / "programs", source, *flags)
    runs_quietly(box, "/run/programs/program")


@pytest.mark.parametrize(
    "script", ["print('fine')", "import numpy; numpy.ones((50, 50)) @ numpy.ones(50); print('fine')"]
)
def test_python_and_its_threads_run_and_nothing_is_printed(script: str, box: Mounted) -> None:
    runs_quietly(box, sys.executable, "-c", script)


@pytest.mark.parametrize("user", ["root", pytest.param("another", marks=pytest.mark.root)])
def test_a_container_with_a_root_that_cannot_be_written(user: str, box: Mounted, tmp_path: Path) -> None:
    """The facade needs to write nothing but the usage file, which any user may."""
    compile_program(tmp_path / "programs", "plain", ["native/tests/escapes.c", "native/facade/shared/limits.c"])
    box.show(box.host, "/run/node", writable=True)
    (box.host / "machine").chmod(0o666)
    command = "/run/programs/plain name"
    if user == "another":
        command = f"setpriv --reuid 65534 --regid 65534 --clear-groups sh -c {shlex.quote('umask 0777; ' + command)}"
    script = f"export SIMGPU_MACHINE=/run/node/machine; mount -o remount,bind,ro / && ! touch /x && {command}"
    done = box.run("sh", "-c", script)
    assert done.stdout == "held\n" and "CUDA error 2" in done.stderr, done.stderr


def test_programs_of_address_sanitizer_start_and_are_watched(box: Mounted, tmp_path: Path) -> None:
    """By default they end where a library is preloaded. With an argument, the program writes behind its memory."""
    source = "int main(int count, char **all) { char text[4]; return (*all)[0] == 0 || (text[count * 4 - 4] = 0); }\n"
    compiled(tmp_path / "programs", source, "-O0", "-fsanitize=address")
    assert box.run("/run/programs/program").returncode == 0
    assert "stack-buffer-overflow" in box.run("/run/programs/program", "more").stderr


def test_the_name_for_linkers_holds_nothing_but_a_need() -> None:
    path = native.path("facade/libcuda.so")
    dynamic = reported("readelf", "-dW", path)
    assert re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic) == ["libcuda.so.1"]
    assert exported(path) == {"__asan_default_options"} and "INIT" not in dynamic and "TEXTREL" not in dynamic


def test_what_the_node_runs_needs_no_c_library() -> None:
    needs_static_libc()
    assert "INTERP" not in reported("readelf", "-lW", native.path("facade/lamina-cover"))
