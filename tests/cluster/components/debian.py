"""Debian packages, downloaded and unpacked next to the system without being installed.

apt works here on lists of its own, so the machine's sources stay as they are. The archive is the one that the machine
already uses; of it the cluster wants Debian 12, and Debian 13 for what has to be newer.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.cluster.components.commands import Unavailable, run

STABLE, NEWER = "bookworm", "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Apt:
    """apt with all that it keeps below one folder."""

    def __init__(self, folder: Path, architecture: str = "amd64") -> None:
        self._sources = folder / "sources.list.sources"
        for name in ("state/lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._options = [
            *("-o", f"Dir::Etc::sourcelist={self._sources}"),
            *("-o", "Dir::Etc::sourceparts=-"),
            *("-o", f"Dir::State={folder / 'state'}"),
            *("-o", f"Dir::Cache={folder / 'cache'}"),
            *("-o", "APT::Sandbox::User=root"),
            *("-o", f"APT::Architecture={architecture}"),
            *("-o", f"APT::Architectures={architecture}"),
            *("-o", "Acquire::Retries=3"),
        ]

    def update(self) -> None:
        """Fetch the lists. Raises Unavailable where there is no Debian archive to be reached."""
        stanza = f"Types: deb deb-src\nURIs: {_archive()}\nSuites: {STABLE} {NEWER}\nComponents: main\n"
        self._sources.write_text(stanza + f"Signed-By: {KEYRING}\n")
        run(["apt-get", *self._options, "update"], timeout=300)

    def download(self, packages: Sequence[str], into: Path) -> list[Path]:
        """The files of packages, each named as apt does it: `name/suite`."""
        into.mkdir(parents=True, exist_ok=True)
        run(["apt-get", *self._options, "download", *packages], cwd=into, timeout=600)
        names = [package.partition("/")[0] for package in packages]
        return [file for name in names for file in into.glob(f"{name}_*.deb")]

    def source(self, package: str, into: Path) -> list[Path]:
        """The files of a source package, checked against its description and not unpacked."""
        into.mkdir(parents=True, exist_ok=True)
        run(
            ["apt-get", *self._options, "source", "--download-only", "--only-source", f"{package}/{STABLE}"],
            cwd=into,
            timeout=600,
        )
        return sorted(into.glob(f"{package}_*"))


def unpack(packages: Sequence[Path], into: Path) -> None:
    """The files of binary packages, below `into` as they would lie below /."""
    into.mkdir(parents=True, exist_ok=True)
    for package in packages:
        run(["dpkg-deb", "-x", package, into])


def _archive() -> str:
    """The address of the Debian archive in the machine's own sources of packages."""
    try:
        known = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"])
    except Unavailable as error:
        raise Unavailable(f"the cluster's programs come from Debian packages, and here is no apt: {error}") from error
    found = [uri for uri, _, release in (line.partition(" ") for line in known.splitlines()) if release == STABLE]
    if not found or not KEYRING.exists():
        raise Unavailable(
            f"this machine has no source of Debian {STABLE} packages, from which the cluster's programs come"
        )
    return found[0]
