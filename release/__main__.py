"""All files of a release, in one new folder: `python -m release dist`, which `make release` calls.

Wheels and sources, the chart, images for both architectures, a bill of materials for each, the checksums of all and
CONTENTS.md. Everything is made twice, and the two have to be the same, byte by byte. What cannot be made on this
machine is named in one sentence, and then there is no folder.
"""

import argparse
import gzip
import hashlib
import io
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from lamina.install.chart import chart, chart_version
from release import image, sbom, wheels
from version import image_tag

SUMS, CONTENTS = "SHA256SUMS", "CONTENTS.md"
KINDS = (
    ("lamina-*-image-*.tar.cdx.json", "what that image holds, as a CycloneDX document"),
    ("*.whl.cdx.json", "what is installed with that wheel, as a CycloneDX document"),
    (
        "lamina-*-image-*.tar",
        "the image for the architecture in its name: an OCI archive for `docker load` or `skopeo`",
    ),
    ("lamina_lab-*.whl", "the lab, for Linux on the architecture in its name"),
    ("lamina-*-any.whl", "the commands that ask a cluster, for every system"),
    ("lamina-*.whl", "Lamina for Linux on the architecture in its name, for every Python from 3.11 on"),
    ("lamina-*.tgz", "the Helm chart: `helm install lamina FILE`"),
    ("lamina-*.tar.gz", "the sources of Lamina"),
)
"""Patterns of file names, and what such a file is. The first pattern that matches applies."""


def make(folder: Path, base: str | None = None) -> None:
    """Make all files in a new folder. Raises CannotBuild or CannotRelease with the step that does not work here."""
    source = image.Source.of_checkout()
    if source.version.endswith("dirty"):
        raise image.CannotBuild(f"version {source.version} is not what is committed: commit your changes first")
    if reason := image.missing():
        raise image.CannotBuild(reason)
    wheels.build(folder)
    write_chart(folder / f"lamina-{chart_version(source.version)}.tgz", source.epoch)
    for wheel in sorted(folder.glob("lamina-*.whl")):
        (folder / f"{wheel.name}.cdx.json").write_text(sbom.of_wheel(wheel, source.version, source.epoch))
    for architecture, machine in image.ARCHITECTURES.items():
        (wheel,) = folder.glob(f"lamina-*_{machine}.whl")
        archive = folder / f"lamina-{source.version}-image-{architecture}.tar"
        name = f"lamina:{image_tag(source.version)}"
        image.build(archive, name, wheel, source, architecture, base)
        document = sbom.of_image(archive, name, source.version, source.epoch)
        (folder / f"{archive.name}.cdx.json").write_text(document)
    _write_contents(folder, source)


def write_chart(target: Path, epoch: int) -> None:
    """The chart as Helm packs it, in a fixed order and with one time."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", mtime=epoch, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path, text in sorted(chart().items()):
            content = text.encode()
            entry = tarfile.TarInfo(f"lamina/{path}")
            entry.size, entry.mtime = len(content), epoch
            archive.addfile(entry, io.BytesIO(content))


def _write_contents(folder: Path, source: image.Source) -> None:
    files = sorted(folder.iterdir())
    lines = [f"# Lamina {source.version}", "", f"Commit `{source.revision}`, {source.created}.", ""]
    lines += ["| file | size | what it is |", "|---|---|---|"]
    lines += [f"| `{path.name}` | {path.stat().st_size:,} B | {_kind(path)} |" for path in files]
    lines += [
        "",
        f"`sha256sum --check {SUMS}` checks all of them. docs/contributing/release.md says how they are made.",
    ]
    (folder / CONTENTS).write_text("\n".join(lines) + "\n")
    sums = [f"{digest}  {name}\n" for name, digest in digests(folder).items()]
    (folder / SUMS).write_text("".join(sums))


def _kind(path: Path) -> str:
    return next(what for pattern, what in KINDS if path.match(pattern))


def digests(folder: Path) -> dict[str, str]:
    """The checksum of each file of a release, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != SUMS
    }


def make_twice(folder: Path, base: str | None = None) -> None:
    """Make a release, and again elsewhere. Raises CannotBuild where the two differ, and leaves neither then."""
    if folder.exists():
        raise image.CannotBuild(f"{folder} exists: remove it first, or name another folder")
    with tempfile.TemporaryDirectory(prefix="lamina-release-") as name:
        first, second = Path(name, "first"), Path(name, "second")
        make(first, base)
        make(second, base)
        if different := [each for each, digest in digests(first).items() if digests(second).get(each) != digest]:
            raise image.CannotBuild(f"made again from the same commit, other files came out: {', '.join(different)}")
        shutil.copytree(first, folder)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Make all files of a release, twice.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base", type=image.by_digest, help="of the images: a registry's, by its digest")
    asked = parser.parse_args()
    try:
        make_twice(asked.folder, asked.base)
    except (image.CannotBuild, wheels.CannotRelease) as problem:
        sys.exit(f"release: {problem}")
    print((asked.folder / CONTENTS).read_text(), end="")


if __name__ == "__main__":
    main()
