"""Where the cluster's programs are.

KUBE_BIN_DIR names a folder with Kubernetes' servers and kubectl, of any version from 1.20 on; containerd, its shim,
ctr, runc, etcd and a folder `cni` are taken from there too where they are. Everything else comes from Debian, and
without KUBE_BIN_DIR Kubernetes 1.20.2 is built from Debian's source.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.components import building, cache
from tests.cluster.components.commands import Unavailable, run
from tests.cluster.components.debian import NEWER, STABLE, Apt, unpack

SYSTEM = ("runc", "containernetworking-plugins", "iptables", "conntrack")
LIBRARIES = (
    *("libip4tc2", "libip6tc2", "libxtables12", "libnftnl11", "libmnl0"),
    *("libnetfilter-conntrack3", "libnfnetlink0", "libseccomp2"),
)
"""What iptables, conntrack and runc link to; containerd and etcd need only the C library."""
NEWER_SYSTEM = ("containerd", "etcd-server")
"""containerd 1.7 reads CDI names from annotations; etcd 3.5 serves old and new API servers."""
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")
"""What KUBE_BIN_DIR must hold."""


@dataclass(frozen=True)
class Binaries:
    version: tuple[int, int]
    """Kubernetes' major and minor version."""
    folders: tuple[Path, ...]
    """Looked through in this order."""
    cni: Path
    libraries: Path

    def __getitem__(self, name: str) -> Path:
        """The path of a program. Raises Unavailable where it is nowhere."""
        found = self.find(name)
        if found is None:
            raise Unavailable(f"there is no {name} in {', '.join(map(str, self.folders))}")
        return found

    def find(self, name: str) -> Path | None:
        return next((folder / name for folder in self.folders if os.access(folder / name, os.X_OK)), None)

    @property
    def environment(self) -> dict[str, str]:
        """What the cluster's programs see; nothing of the environment in which the tests run."""
        path = ":".join([*map(str, self.folders), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        tables = str(self.libraries / "xtables")
        return {"PATH": path, "HOME": "/root", "LD_LIBRARY_PATH": str(self.libraries), "XTABLES_LIBDIR": tables}


def find() -> Binaries:
    """All programs, made or fetched where they are not there yet. Raises Unavailable with the reason."""
    named = given()
    system = cache.kept("debian-12-and-13", _fetch_system)
    own = (system / "bin", system / "usr/bin", system / "usr/sbin")
    libraries, cni = system / "usr/lib/x86_64-linux-gnu", system / "usr/lib/cni"
    if named is None:
        built = cache.kept(f"kubernetes-{building.VERSION}", lambda work, result: building.build(_apt(), work, result))
        return Binaries(_version(built), (built, *own), cni, libraries)
    return Binaries(_version(named), (named, *own), named / "cni" if (named / "cni").is_dir() else cni, libraries)


def given() -> Path | None:
    """KUBE_BIN_DIR, where it is set. Raises Unavailable if a program is missing there, before anything is fetched."""
    value = os.environ.get("KUBE_BIN_DIR")
    if not value:
        return None
    folder = Path(value).resolve()
    instead = f"add what is missing, or unset KUBE_BIN_DIR to build Kubernetes {building.VERSION}"
    if not folder.is_dir():
        raise Unavailable(f"KUBE_BIN_DIR is {folder}, which is not a directory; {instead}")
    if missing := [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]:
        raise Unavailable(f"KUBE_BIN_DIR is {folder}, which has no {', '.join(missing)}; {instead}")
    return folder


def _version(folder: Path) -> tuple[int, int]:
    output = run([folder / "kubelet", "--version"])
    match = re.search(r"v(\d+)\.(\d+)", output)
    if match is None:
        raise Unavailable(f"{folder / 'kubelet'} does not tell its version: {output.strip()}")
    version = int(match[1]), int(match[2])
    if version < (1, 20):
        raise Unavailable(f"{folder} holds Kubernetes {match[0]}; the cluster under test begins with 1.20")
    return version


def _apt() -> Apt:
    apt = Apt(cache.folder() / "apt")
    apt.update()
    return apt


def fetch(packages: list[str], into: Path) -> list[Path]:
    """Debian packages, each named as `name/suite`."""
    return _apt().download(packages, into)


def _fetch_system(work: Path, result: Path) -> None:
    wanted = [*(f"{name}/{STABLE}" for name in (*SYSTEM, *LIBRARIES)), *(f"{name}/{NEWER}" for name in NEWER_SYSTEM)]
    unpack(fetch(wanted, work), result)
    programs = result / "bin"
    programs.mkdir()
    for name in ("iptables", "ip6tables"):
        for command in (name, f"{name}-save", f"{name}-restore"):
            (programs / command).symlink_to("../usr/sbin/xtables-nft-multi")
