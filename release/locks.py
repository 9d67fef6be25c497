"""The lock files: every package that an image, the commands of the Makefile and a release install, by version and hash.

    make lock    # the newest versions that pyproject.toml allows; needs PyPI

A lock names all files of a version, so it serves amd64 and arm64, and markers serve every Python from 3.11 on. What a
smaller lock pins is the same in a larger one.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "locks"
OLDEST_PYTHON = "3.11"
OURS = {"lamina", "lamina-lab"}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: *;[^\\]*)? *\\$")
_HASH = re.compile(r"^ +--hash=sha256:([0-9a-f]{64})(?: \\)?$")
_FOR = """[tool.uv]\nenvironments = ["sys_platform == 'linux'"]\n"""
_READ = "requirements"
"""By this name uv says that something is pinned because it was asked for, not because something else needs it."""


def wanted() -> dict[str, list[str]]:
    """By lock, from the smallest to the largest: the requirements that pyproject.toml and the lab's declare."""
    product, lab = (tomllib.loads((ROOT / name).read_text()) for name in ("pyproject.toml", "lab/pyproject.toml"))
    extras = product["project"]["optional-dependencies"]
    image = product["project"]["dependencies"]
    build = [*product["build-system"]["requires"], *lab["build-system"]["requires"]]
    run = [*image, *lab["project"]["dependencies"], *build]
    found = {"image": image, "lab": run, "test": [*run, *extras["test"], *extras["release"]]}
    return {name: sorted({text for text in texts if _name(text) not in OURS}) for name, texts in found.items()}


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def hashes(lock: Path) -> dict[tuple[str, str], list[str]]:
    """The hashes of all files of each package and version in a lock. Refuses a pin without one."""
    found: dict[tuple[str, str], list[str]] = {}
    pin: tuple[str, str] | None = None
    for line in lock.read_text().splitlines():
        if match := _PIN.match(line):
            pin = canonicalize_name(match[1]), match[2]
            found[pin] = []
        elif pin and (value := _HASH.match(line)):
            found[pin].append(value[1])
    if bare := [name for (name, _), values in found.items() if not values]:
        raise ValueError(f"{lock.name} pins {bare[0]} without a hash; make it again with `make lock`")
    return found


def pins(lock: Path) -> dict[str, list[str]]:
    """The versions of each package in a lock: one, or several for different Pythons. Refuses a pin without a hash."""
    found: dict[str, list[str]] = {}
    for name, version in hashes(lock):
        found.setdefault(name, []).append(version)
    return found


def asked(lock: Path) -> set[str]:
    """The packages that a lock has because they were asked for."""
    found, package = set(), ""
    for line in lock.read_text().splitlines():
        if pin := _PIN.match(line):
            package = canonicalize_name(pin[1])
        elif re.match(rf"^ +# +(?:via +)?-r {_READ}$", line):
            found.add(package)
    return found


def differences(name: str, folder: Path = FOLDER) -> list[str]:
    """What pyproject.toml asks for and this lock does not give, or the other way round; a sentence each."""
    lock = folder / f"{name}.txt"
    pinned = pins(lock)
    requirements = [Requirement(text) for text in wanted()[name]]
    names = {canonicalize_name(each.name) for each in requirements}
    said = [f"{lock.name} has {each}, which pyproject.toml does not ask for" for each in sorted(asked(lock) - names)]
    for each in requirements:
        versions = pinned.get(canonicalize_name(each.name), [])
        if not versions:
            said.append(f"{lock.name} lacks {each}, which pyproject.toml asks for")
        said += [f"{lock.name} pins {each.name} {one}, not {each}" for one in versions if one not in each.specifier]
    return said


def write() -> None:
    """Write all locks. Each is bound by the one before, so that a test runs what the image holds."""
    before: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text(_FOR)
        for lock, requirements in wanted().items():
            (folder / _READ).write_text("\n".join(requirements))
            command = [sys.executable, "-m", "uv", "pip", "compile", _READ, *before, "--output-file", f"{lock}.txt"]
            command += ["--universal", "--generate-hashes", "--python-version", OLDEST_PYTHON]
            command += ["--custom-compile-command", "make lock", "--quiet"]
            done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"the lock {lock} could not be made, and all stay as they were: {done.stderr.strip()}")
            before = ["--constraints", f"{lock}.txt"]
        for lock in wanted():
            shutil.copyfile(folder / f"{lock}.txt", FOLDER / f"{lock}.txt")


if __name__ == "__main__":
    write()
