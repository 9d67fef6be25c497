"""The packages of a release, into an empty folder: wheels for each machine and one without C parts, and the sources.

    python -m release.wheels dist

No C part uses Python's ABI, so a wheel serves every Python, which is written into it after meson-python has made it.
zig compiles for both architectures and a C library of 2012; auditwheel says whether that came out. The same commit
gives the same files.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from version import ROOT, version

ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = {"lamina": "2.17", "lamina_lab": "2.27"}
"""The oldest C library of each package. What containers load has to be older than the machines that run a lab."""
_SOURCES = {"lamina": ROOT, "lamina_lab": ROOT / "lab"}
_OTHER_NAMES = {"2.17": "manylinux2014"}
"""By which pip knows a platform too."""
_CONSISTENT = re.compile(r'following platform tag:\s+"(\S+)"')


class CannotRelease(Exception):
    """One sentence that says what is wrong with a package."""


def build(folder: Path, names: tuple[str, ...] = tuple(_SOURCES)) -> list[Path]:
    """Make all packages, check them, and return their paths. Raises CannotRelease."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotRelease(f"{folder} is not empty")
    for name in names:
        for architecture in ARCHITECTURES:
            compiled(folder, name, architecture)
    without_c_parts(folder)
    sources(folder)
    made = sorted(folder.iterdir())
    _python("twine", "check", "--strict", *map(str, made))
    return made


def compiled(folder: Path, name: str, architecture: str) -> Path:
    """The wheel of a package for Linux on this architecture, whichever Python makes it."""
    work = folder / f"{name}.{architecture}"
    work.mkdir()
    cross = work / "cross.ini"
    cross.write_text(cross_file(architecture, GLIBC[name]))
    made = _wheel(work, _SOURCES[name], f"--cross-file={cross}")
    platform = f"manylinux_{GLIBC[name].replace('.', '_')}_{architecture}"
    made = _tagged(made, f"linux_{architecture}")
    if (found := _for_platform(made)) != platform:
        raise CannotRelease(f"{made.name} should be for {platform}, and auditwheel says {found}")
    names = [platform, *(f"{each}_{architecture}" for glibc, each in _OTHER_NAMES.items() if glibc == GLIBC[name])]
    return _moved(_tagged(made, ".".join(names)), folder)


def without_c_parts(folder: Path) -> Path:
    """The wheel for all other machines. pip prefers the others where they fit."""
    work = folder / "lamina.any"
    work.mkdir()
    return _moved(_wheel(work, ROOT, "-Dnative=disabled"), folder)


def sources(folder: Path) -> Path:
    """The source distribution. The lab has none, as it is built from the sources of both."""
    _python("build", "--sdist", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (made,) = folder.glob("*.tar.gz")
    return made


def cross_file(architecture: str, glibc: str) -> str:
    """What meson needs to know to compile with zig. Wheels have no names of folders of this machine."""
    zig = [sys.executable, "-m", "ziglang"]
    target = f"{architecture}-linux-gnu.{glibc}"
    return (
        f"[binaries]\nc = {[*zig, 'cc', '-target', target]}\nar = {[*zig, 'ar']}\n"
        "[built-in options]\nc_args = ['-g0']\nc_link_args = ['-s']\n"
        f"[host_machine]\nsystem = 'linux'\ncpu_family = '{architecture}'\ncpu = '{architecture}'\nendian = 'little'\n"
    )


def _wheel(work: Path, source: Path, setup: str) -> Path:
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", str(work))
    _python("pip", "wheel", *options, f"-Csetup-args={setup}", str(source))
    (made,) = work.glob("*.whl")
    return made


def _tagged(wheel: Path, platform: str) -> Path:
    tags = ("--python-tag", "py3", "--abi-tag", "none", "--platform-tag", platform)
    _python("wheel", "tags", "--remove", *tags, str(wheel))
    (made,) = wheel.parent.glob("*.whl")
    return made


def _for_platform(wheel: Path) -> str:
    said = " ".join(_python("auditwheel", "show", str(wheel)).split())
    found = _CONSISTENT.search(said)
    return found[1] if found else said


def _moved(wheel: Path, folder: Path) -> Path:
    made = wheel.rename(folder / wheel.name)
    for path in wheel.parent.iterdir():
        path.unlink()
    wheel.parent.rmdir()
    return made


def _python(module: str, *arguments: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    committed = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    epoch = subprocess.run(committed, capture_output=True, text=True, check=False).stdout.strip()
    environment = {"SOURCE_DATE_EPOCH": epoch or "0"} | os.environ | {"PATH": path}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise CannotRelease(f"{module} failed: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Make the packages of a release.")
    parser.add_argument("folder", type=Path)
    try:
        made = build(parser.parse_args().folder)
    except CannotRelease as problem:
        sys.exit(f"release.wheels: {problem}")
    print(f"version {version()}:", *(path.name for path in made), sep="\n  ")


if __name__ == "__main__":
    main()
