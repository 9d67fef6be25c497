"""A base for the image from Debian's packages, for where no registry can be reached: Python, its libraries and a shell.

The packages are unpacked and not configured, so nothing of another architecture has to run here. What is the same for
all packages, such as documentation, stays out.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pip

from tests.cluster.components import cache, images
from tests.cluster.components.commands import run
from tests.cluster.components.debian import STABLE, Apt, unpack

PACKAGES = (
    *("base-files", "coreutils", "dash", "findutils", "sed", "ca-certificates", "media-types", "netbase", "tzdata"),
    *("libc6", "libc-bin", "libgcc-s1", "libstdc++6", "libacl1", "libattr1", "libselinux1", "libpcre2-8-0", "libgmp10"),
    *("libssl3", "zlib1g", "libbz2-1.0", "liblzma5", "libexpat1", "libffi8", "libuuid1", "libtinfo6", "libncursesw6"),
    *("libreadline8", "libcrypt1", "libdb5.3", "libsqlite3-0", "libtirpc3", "libnsl2", "libgssapi-krb5-2", "libkrb5-3"),
    *("libk5crypto3", "libcom-err2", "libkrb5support0", "libkeyutils1"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)
"""What pip needs is in the standard library. The libraries are those that its modules link to."""
NAME = "localhost/lamina-base"
_LEFT_OUT = (
    *("usr/share/gcc", "usr/share/gdb", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man"),
    *(f"usr/lib/python3.11/{name}" for name in ("idlelib", "lib2to3", "pydoc_data", "test", "unittest/test")),
)
_USERS = {"passwd": "root:x:0:0::/root:/bin/sh\nlamina:x:65532:65532::/tmp:/bin/sh\n", "group": "root:x:0:\n"}


def write(architecture: str, target: Path, *, with_pip: bool = False) -> Path:
    """Write the archive of the base; `with_pip` of the one that installs packages, with the pip that runs here."""
    root = cache.kept(f"base-debian-12-{architecture}", lambda work, result: _unpack(architecture, work, result))
    if not with_pip:
        return images.write(target, f"{NAME}:{architecture}", root, architecture=architecture)
    draft = target.with_suffix(".root")
    shutil.copytree(root, draft, symlinks=True)
    shutil.copytree(
        Path(pip.__file__).parent,
        draft / "usr/lib/python3/dist-packages/pip",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    images.write(target, f"{NAME}:{architecture}-pip", draft, architecture=architecture)
    shutil.rmtree(draft)
    return target


def _unpack(architecture: str, work: Path, result: Path) -> None:
    apt = Apt(cache.folder() / f"apt-{architecture}", architecture)
    apt.update()
    packages = apt.download([f"{name}/{STABLE}" for name in PACKAGES], work)
    unpack(packages, result)
    _record(packages, result / "var/lib/dpkg/status.d")
    for part in ("bin", "lib", "lib64", "sbin"):  # as on every Debian of today, one folder under two names
        if (result / part).is_dir():
            run(["cp", "-a", f"{result / part}/.", result / "usr" / part])
            shutil.rmtree(result / part)
        if (result / "usr" / part).is_dir():
            (result / part).symlink_to(f"usr/{part}")
    (result / "usr/bin/python3").symlink_to("python3.11")
    (result / "usr/bin/sh").unlink(missing_ok=True)
    (result / "usr/bin/sh").symlink_to("dash")
    for part in _LEFT_OUT:
        shutil.rmtree(result / part, ignore_errors=True)
    for path in (result / "usr/share/doc").rglob("*"):
        if path.name != "copyright" and not path.is_dir():
            path.unlink()
    for part in ("dev", "etc", "proc", "root", "run", "sys", "tmp"):
        (result / part).mkdir(exist_ok=True)
    (result / "tmp").chmod(0o1777)
    for name, text in _USERS.items():
        (result / "etc" / name).write_text(text)
    certificates = sorted((result / "usr/share/ca-certificates").rglob("*.crt"))
    (result / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    bundle = b"".join(path.read_bytes() for path in certificates)
    (result / "etc/ssl/certs/ca-certificates.crt").write_bytes(bundle)


def _record(packages: Sequence[Path], folder: Path) -> None:
    """What is installed, where scanners look for it in images without a package manager: a file for each package."""
    folder.mkdir(parents=True)
    for package in packages:
        (folder / package.name.partition("_")[0]).write_text(run(["dpkg-deb", "--field", package]))
