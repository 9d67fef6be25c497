"""Things that take long to make, kept between runs.

A thing is a folder. It is there as a whole or not at all: it is made under another name, and renamed when it is done.
What an attempt leaves in its work folder is there for the next one, which goes on from it. Two runs at once make a
thing once.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def folder() -> Path:
    """Where the cluster keeps things; made when it is not there."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lamina" / "stage"
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextmanager
def _only_one(name: str) -> Iterator[None]:
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(name: str, make: Callable[[Path, Path], None]) -> Path:
    """The folder `name`; `make(work, result)` fills `result` where it is not there yet."""
    place = folder() / name
    with _only_one(name):
        if place.exists():
            return place
        work, result = folder() / f"{name}.work", folder() / f"{name}.new"
        shutil.rmtree(result, ignore_errors=True)
        work.mkdir(exist_ok=True)
        result.mkdir()
        make(work, result)
        result.rename(place)
        shutil.rmtree(work)
    return place
