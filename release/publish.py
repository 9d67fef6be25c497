"""The images of a release under one name, pushed with buildah: `python -m release.publish dist docker://REGISTRY/lamina`.

`make publish` calls it. The name has the tag of the version and one image for each architecture. The digest of the
whole is written to IMAGE_DIGEST in the folder, for those who sign it. `oci:FOLDER` in place of `docker://` writes a
folder. buildah must be logged in to the registry.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DIGEST = "IMAGE_DIGEST"
_IMAGE = re.compile(r"lamina-(?P<version>.+)-image-(?P<architecture>[a-z0-9]+)\.tar")


class CannotPublish(Exception):
    """One sentence that says what is missing."""


def images(folder: Path) -> tuple[str, dict[str, Path]]:
    """The version of the images in the folder of a release, and their archives by architecture."""
    found = [(named, path) for path in sorted(folder.iterdir()) if (named := _IMAGE.fullmatch(path.name))]
    versions = {named["version"] for named, _ in found}
    if len(versions) != 1:
        raise CannotPublish(f"{folder} has images of {len(versions)} versions; make one release with `make release`")
    return versions.pop(), {named["architecture"]: path for named, path in found}


def push(folder: Path, target: str) -> str:
    """Push the images, and return the digest of the whole."""
    version, archives = images(folder)
    tag = version.replace("+", "_")  # which no tag may have
    with tempfile.TemporaryDirectory(prefix="lamina-publish-") as work:
        storage = ("--root", f"{work}/storage", "--runroot", f"{work}/run", "--storage-driver", "vfs")
        _run("buildah", *storage, "manifest", "create", "release")
        for archive in archives.values():
            _run("buildah", *storage, "manifest", "add", "release", f"oci-archive:{archive.resolve()}")
        written = folder / DIGEST
        pushing = ("manifest", "push", "--all", "--format", "oci", "--digestfile", str(written.resolve()))
        _run("buildah", *storage, *pushing, "release", f"{target}:{tag}")
    return written.read_text().strip()


def _run(*command: str) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=os.environ)
    if done.returncode != 0:
        said = " | ".join((done.stderr or done.stdout).strip().splitlines()[-4:])
        raise CannotPublish(f"`{' '.join(command[-4:])}` ended with {done.returncode}: {said}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.publish", description=__doc__)
    parser.add_argument("folder", type=Path, help="what `make release` made")
    parser.add_argument("target", help="where to, such as docker://REGISTRY/lamina, without a tag")
    options = parser.parse_args()
    try:
        print(push(options.folder, options.target))
    except CannotPublish as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
