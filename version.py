"""The version of this tree, which builds, images and charts follow: `python3 version.py`, or `--tag` for an image.

A commit with a tag such as v0.2.0 is version 0.2.0. Any other is on the way to the version that the file VERSION names:
0.2.0.dev42+g1a2b3c4 is 42 commits after VERSION last changed, so that a clone needs no tags and every clone of a commit
says the same. A source distribution has its own version in VERSION. Where git does not answer, or has only a part of
the history, the version says so and comes before all others.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FILE = "VERSION"
DEV = ".dev"
TAG = re.compile(r"v([0-9]+\.[0-9]+\.[0-9]+(?:rc[0-9]+)?)")


def version(root: Path = ROOT) -> str:
    """The version, as PEP 440 has it. `root` has VERSION."""
    base = (root / FILE).read_text().strip()
    if not base.endswith(DEV):
        return base  # a source distribution, or what an image is built from
    status = _git(root, "status", "--porcelain", "--untracked-files=no")
    if status is None or not _is_top(root):
        return f"{base}0+unknown"
    dirty = "dirty" if status else ""
    tags = (TAG.fullmatch(tag) for tag in (_git(root, "tag", "--points-at", "HEAD") or "").split())
    if released := [tag[1] for tag in tags if tag]:
        return released[-1] + (f"+{dirty}" if dirty else "")
    commit = (_git(root, "rev-parse", "HEAD") or "")[:7]
    return f"{base}{_distance(root)}+g{commit}" + (f".{dirty}" if dirty else "")


def image_tag(of: str) -> str:
    """The version as a tag of an image, which may not contain a plus sign: an underscore, as Helm writes it."""
    return of.replace("+", "_")


def _is_top(root: Path) -> bool:
    """Whether this tree is a checkout, and not a folder in the checkout of something else."""
    top = _git(root, "rev-parse", "--show-toplevel")
    return top is not None and Path(top).resolve() == root.resolve()


def _distance(root: Path) -> int:
    """How many commits follow the last one that changed VERSION; 0 where the history is not all there."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return 0
    changed = _git(root, "log", "-1", "--format=%H", "--", FILE)
    return int(_git(root, "rev-list", "--count", f"{changed}..HEAD") or 0) if changed else 0


def _git(root: Path, *words: str) -> str | None:
    """What git answers, or None where it does not."""
    command = ["git", "-C", str(root), *words]
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write_into_source_distribution() -> None:
    """Called by meson, which says where the files of the distribution are."""
    file = Path(os.environ["MESON_DIST_ROOT"], FILE)
    committed = file.stat().st_mtime
    file.write_text(f"{version()}\n")
    os.utime(file, (committed, committed))  # the same commit gives the same distribution


def main() -> None:
    """See the module."""
    match sys.argv[1:]:
        case []:
            print(version())
        case ["--tag"]:
            print(image_tag(version()))
        case ["--dist"]:
            write_into_source_distribution()
        case _:
            sys.exit("version.py: call it without arguments, or with --tag for the tag of an image")


if __name__ == "__main__":
    main()
