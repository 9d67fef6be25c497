"""The image of the Containerfile, built with buildah: without a daemon, and as an ordinary user too.

    python -m release.image dist/lamina-image.tar --name REGISTRY/lamina:TAG

The archive has the layout of the Open Container Initiative. The same wheel, lock and base give the same archive: layers
have the time of the commit, and no step writes what depends on when or where it runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from release import base, wheels
from tests.cluster.components.commands import Unavailable
from version import image_tag, version

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""As images have it, and as wheels have it."""
HERE = {machine: name for name, machine in ARCHITECTURES.items()}[os.uname().machine]
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_INSIDE = "/run/certificates"


class CannotBuild(Exception):
    """One sentence that says what is missing."""


@dataclass(frozen=True)
class Source:
    """What an image says of where it comes from."""

    version: str
    revision: str
    epoch: int
    """The time of the commit, in seconds."""

    @classmethod
    def of_checkout(cls) -> "Source":
        """Of the commit that is checked out here. Raises CannotBuild where git does not tell."""
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H %ct"]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise CannotBuild(f"an image names its commit, and {ROOT} is no checkout: {done.stderr.strip()}")
        revision, epoch = done.stdout.split()
        return cls(version(), revision, int(epoch))

    @property
    def created(self) -> str:
        return datetime.fromtimestamp(self.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def missing() -> str | None:
    """What this machine lacks to build images, as a sentence."""
    if shutil.which("buildah") is None:
        return "images are built with buildah, which is not on PATH: install Debian's package buildah"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return "the base of the image is made of Debian's packages with apt-get and dpkg-deb, which are not on PATH"
    return None


def build(
    target: Path, name: str, package: Path, source: Source, architecture: str = HERE, of: str | None = None
) -> str:
    """Write the image `name` with this wheel as an archive, and return its digest. `of` names a base by its digest.

    Raises CannotBuild where a program is missing or a step fails.
    """
    if reason := missing():
        raise CannotBuild(reason)
    with tempfile.TemporaryDirectory(prefix="lamina-image-") as folder:
        work = Path(folder)
        builder = _Builder(work)
        bases = (of, of) if of else builder.own_bases(architecture)
        _context(work / "context", package)
        builder.build(name, bases, source, architecture)
        return builder.write(name, target, source.epoch)


def _context(folder: Path, package: Path) -> None:
    """What the Containerfile copies, and what keeps out everything else."""
    (folder / "dist").mkdir(parents=True)
    (folder / "locks").mkdir()
    shutil.copy2(package, folder / "dist")
    shutil.copy2(ROOT / "locks/image.txt", folder / "locks")
    shutil.copy2(ROOT / ".dockerignore", folder)


class _Builder:
    """buildah with all that it keeps below one folder."""

    def __init__(self, work: Path) -> None:
        self._work = work
        storage = ["--root", str(work / "storage"), "--runroot", str(work / "run"), "--storage-driver", "vfs"]
        self._buildah = ["buildah", *storage]

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._buildah, *words], text=True, capture_output=True, check=False, cwd=self._work)
        if done.returncode != 0:
            said = " | ".join((done.stderr or done.stdout).strip().splitlines()[-8:])
            raise CannotBuild(f"`buildah {' '.join(words)[:200]}` ended with {done.returncode}: {said}")
        return done.stdout

    def own_bases(self, architecture: str) -> tuple[str, str]:
        """Names of the base and of what installs packages, which runs here."""
        try:
            runs = base.write(HERE, self._work / "runs.tar", with_pip=True)
            rests = base.write(architecture, self._work / "rests.tar")
        except Unavailable as reason:
            said = f"no base of Debian's packages: {reason}; name another by BASE=NAME@sha256:..."
            raise CannotBuild(said) from reason
        for archive in (runs, rests):
            self._run("pull", "--quiet", f"oci-archive:{archive}")
            archive.unlink()
        return f"{base.NAME}:{architecture}", f"{base.NAME}:{HERE}-pip"

    def build(self, name: str, bases: tuple[str, str], source: Source, architecture: str) -> None:
        arguments = {
            "BASE": bases[0],
            "BUILD_BASE": bases[1],
            "TARGETARCH": architecture,
            "VERSION": source.version,
            "REVISION": source.revision,
            "CREATED": source.created,
            "SOURCE_DATE_EPOCH": str(source.epoch),
            "PIP_INDEX_URL": os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"),
            "PIP_CERT": f"{_INSIDE}/{_CERTIFICATES.name}" if _CERTIFICATES.exists() else "",
        }
        words = [f"--build-arg={key}={value}" for key, value in arguments.items() if value]
        if _CERTIFICATES.exists():
            words += [f"--volume={_CERTIFICATES.parent}:{_INSIDE}:ro"]
        words += ["--isolation=chroot", "--layers=false", f"--timestamp={source.epoch}", f"--tag={name}"]
        self._run("build", *words, f"--file={ROOT / 'Containerfile'}", str(self._work / "context"))

    def write(self, name: str, target: Path, epoch: int) -> str:
        """Write the archive; the order, times and owners of its entries are always the same."""
        layout = self._work / "layout"
        self._run("push", "--quiet", name, f"oci:{layout}:{name}")
        index = json.loads((layout / "index.json").read_text())
        (manifest,) = index["manifests"]
        # containerd takes the first as the name, everyone else the second.
        manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        (layout / "index.json").write_text(json.dumps(index, sort_keys=True))
        tar = ["tar", "--create", f"--file={target.resolve()}", "--sort=name", f"--mtime=@{epoch}", "--owner=0"]
        subprocess.run([*tar, "--group=0", "--numeric-owner", "--mode=u+rw,go+r", "."], cwd=layout, check=True)
        return str(manifest["digest"])


def by_digest(base: str) -> str:
    """The name of a base, as an argument of commands, which refuse one that can be another image tomorrow."""
    if "@sha256:" not in base:
        raise argparse.ArgumentTypeError(
            f"{base} can be another image tomorrow: name it by its digest, NAME@sha256:..."
        )
    return base


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Build the image of this commit.")
    parser.add_argument("archive", type=Path)
    parser.add_argument("--name", default=f"lamina:{image_tag(version())}")
    parser.add_argument("--base", type=by_digest, help="a registry's, by its digest; else it is of Debian's packages")
    asked = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Source.of_checkout()
            wheel = wheels.compiled(Path(folder), "lamina", ARCHITECTURES[HERE])
            digest = build(asked.archive, asked.name, wheel, source, of=asked.base)
    except (CannotBuild, wheels.CannotRelease) as error:
        sys.exit(f"release.image: {error}")
    print(f"{asked.archive}: {asked.name}@{digest}")


if __name__ == "__main__":
    main()
