"""A container image of Lamina made from this machine, without an engine, a registry or root.

It holds the Python that runs this file with its standard library, the installed packages that Lamina needs, Lamina
itself with its native parts, and the shared libraries of all of them, each at its place on this machine, packages below
/usr/lib/lamina. That takes seconds and nothing from the network. The Containerfile makes the image that people use;
both start the same commands.

    python -m tests.container_image lamina.tar                    to be loaded by
    ctr -n k8s.io images import lamina.tar                        or `docker load -i lamina.tar`
    python -m tests.container_image --program sleep --program sh work.tar work:test
"""

import argparse
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath

import lamina

REPOSITORY = "lamina"
TAG = lamina.__version__
PACKAGES = PurePosixPath("/usr/lib/lamina")
_NOT_NEEDED = {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages"}
"""Folders of the standard library that Lamina does not use."""
_NOWHERE_NEEDED = re.compile(r"(^|/)tests/|\.opt-[12]\.pyc$|/_tkinter\.|\.(a|pyi|h)$")
_FOLDERS = ("/tmp", "/var/tmp", "/proc", "/sys", "/dev", "/etc", "/run", "/root")
_USERS = {"passwd": "root:x:0:0::/root:/bin/sh\nlamina:x:65532:65532::/tmp:/bin/sh\n", "group": "root:x:0:\n"}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

Contents = dict[str, Path | bytes | str]
"""By absolute path in the image: a file to copy, the bytes of one, or the target of a link."""


def build(archive: Path, name: str = f"{REPOSITORY}:{TAG}", *, programs: Iterable[str] = ()) -> None:
    """Write the image as an archive that `ctr images import` and `docker load` read.

    `programs` of this machine are put into its /bin, for images that people's containers run.
    """
    contents = product() | _python() | _added(programs)
    contents |= _libraries(path for path in contents.values() if isinstance(path, Path))
    layer = _layer(contents)
    config = json.dumps(_config(hashlib.sha256(layer).hexdigest())).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"config.json": config, "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(archive, "w") as out:
        for file, content in files.items():
            _add(out, file, content)


def _config(layer_digest: str) -> Mapping[str, object]:
    environment = ["PATH=/usr/local/bin:/usr/bin:/bin", f"PYTHONPATH={PACKAGES}", "PYTHONUNBUFFERED=1"]
    return {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": environment, "Entrypoint": ["/usr/bin/lamina"], "User": "65532:65532", "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
    }


def product() -> Contents:
    """The installed packages that Lamina needs, and Lamina as it is imported here."""
    contents: Contents = {}
    for package in ("lamina", *sorted(_required("lamina"))):
        for file in _files_of(package):
            path = Path(str(file.locate()))
            if ".." not in file.parts and not _NOWHERE_NEEDED.search(str(file)) and path.is_file():
                contents[str(PACKAGES / file)] = path
    home = Path(lamina.__file__).parent
    for path in _files(home, without=()):
        inside = path.relative_to(home)
        if not any(part.endswith(".p") for part in inside.parts):
            contents[str(PACKAGES / "lamina" / inside)] = path
    script = f"#!{_interpreter()}\nfrom lamina.cli.main import main\n\nmain()\n"
    return contents | {"/usr/bin/lamina": script.encode()}


def _files_of(package: str) -> Iterable[metadata.PackagePath]:
    """Of a working copy, which is not installed, none."""
    try:
        return metadata.files(package) or ()
    except metadata.PackageNotFoundError:
        return ()


def _required(name: str) -> set[str]:
    """The names of the installed distributions that this one needs, from what each of them declares."""
    found: set[str] = set()
    waiting = [_plain(text) for text in _declared(name)]
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        try:
            needed = metadata.requires(each) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform, or another Python
        found.add(each)
        waiting += [_plain(text) for text in needed if "extra ==" not in text]
    return found


def _declared(name: str) -> list[str]:
    """What the distribution needs; of a working copy, which is not installed, what pyproject.toml says."""
    try:
        return [text for text in metadata.requires(name) or [] if "extra ==" not in text]
    except metadata.PackageNotFoundError:
        project = Path(__file__).parents[1] / "pyproject.toml"
        return list(tomllib.loads(project.read_text())["project"]["dependencies"])


def _plain(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return found[0]


def _interpreter() -> Path:
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _python() -> Contents:
    """The interpreter and its standard library."""
    contents: Contents = {str(_interpreter()): _interpreter(), "/usr/bin/python3": str(_interpreter())}
    library = Path(sysconfig.get_path("stdlib"))
    for path in _files(library, without=_NOT_NEEDED):
        contents[str(path)] = path
    return contents


def _files(folder: Path, *, without: Iterable[str]) -> Iterator[Path]:
    """All files below, through links, but for those in folders of these names right below."""
    for where, folders, files in os.walk(folder, followlinks=True):
        if Path(where) == folder:
            folders[:] = [each for each in folders if each not in without and not each.startswith("config-")]
        paths = (Path(where, file) for file in files)
        yield from (path for path in paths if path.is_file() and not _NOWHERE_NEEDED.search(str(path)))


def _added(programs: Iterable[str]) -> Contents:
    contents: Contents = {}
    for program in programs:
        found = shutil.which(program)
        if found is None:
            raise SystemExit(f"there is no program {program} on this machine's PATH")
        contents[f"/bin/{Path(program).name}"] = Path(found).resolve()
    return contents


def _libraries(paths: Iterable[Path]) -> Contents:
    """The shared libraries that these files need, as this machine's loader finds them, and the loader.

    What lies in the packages' own folders is in the image already.
    """
    contents: Contents = {}
    candidates = sorted({path for path in paths if os.access(path, os.X_OK) or ".so" in path.name})
    binaries = [path for path in candidates if _is_elf(path)]
    reported = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    for name in set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", reported, re.MULTILINE)):
        if "site-packages" not in name and "_native" not in name:
            # A Python that finds its library by a path relative to itself has ".." in it, which no archive may hold.
            contents[os.path.normpath(name)] = Path(name)
    return contents


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _layer(contents: Contents) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        made: set[PurePosixPath] = set()
        for name in _FOLDERS:
            _make_folders(layer, PurePosixPath(name), made)
        for name, text in _USERS.items():
            _add(layer, f"etc/{name}", text.encode())
        for name in sorted(contents):
            _make_folders(layer, PurePosixPath(name).parent, made)
            content = contents[name]
            if isinstance(content, str):
                link = tarfile.TarInfo(name.lstrip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, content
                layer.addfile(link)
            elif isinstance(content, bytes):
                _add(layer, name.lstrip("/"), content, mode=0o755)
            else:
                _copy(layer, name.lstrip("/"), content)
    return buffer.getvalue()


def _make_folders(layer: tarfile.TarFile, folder: PurePosixPath, made: set[PurePosixPath]) -> None:
    for each in (*reversed(folder.parents), folder):
        if each not in made and str(each) != "/":
            made.add(each)
            info = tarfile.TarInfo(str(each).lstrip("/"))
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if each.name == "tmp" else 0o755
            layer.addfile(info)


def _copy(layer: tarfile.TarFile, name: str, source: Path) -> None:
    """The file with its time, by which Python knows compiled modules, readable by everybody."""
    info = tarfile.TarInfo(name)
    stat = source.stat()
    info.size, info.mtime, info.mode = stat.st_size, int(stat.st_mtime), 0o755 if stat.st_mode & 0o100 else 0o644
    with source.open("rb") as file:
        layer.addfile(info, file)


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Make a container image of Lamina from this machine.")
    parser.add_argument("archive", type=Path)
    parser.add_argument("name", nargs="?", default=f"{REPOSITORY}:{TAG}")
    parser.add_argument("--program", action="append", default=[], help="a program to put into the image's /bin")
    asked = parser.parse_args()
    build(asked.archive, asked.name, programs=asked.program)


if __name__ == "__main__":
    main()
