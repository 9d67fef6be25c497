"""The lock files give what pyproject.toml asks for, by hash, for each Python and architecture that Lamina has."""

import re
import shutil
from pathlib import Path

import pytest

from release import locks

LOCKS = sorted(locks.wanted())


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """A folder with copies of all locks, to be changed."""
    return Path(shutil.copytree(locks.FOLDER, tmp_path / "locks"))


def changed(lock: Path, old: str, new: str) -> None:
    text = lock.read_text()
    assert re.search(old, text), old
    lock.write_text(re.sub(old, new, text, count=1))


@pytest.mark.parametrize("name", LOCKS)
def test_it_gives_what_is_asked_for(name: str) -> None:
    assert locks.differences(name) == [], "run `make lock`"


def test_a_larger_lock_has_the_versions_of_a_smaller_one() -> None:
    image, lab, test = (locks.pins(locks.FOLDER / f"{name}.txt") for name in ("image", "lab", "test"))
    assert image.items() <= lab.items() <= test.items()


def test_a_version_that_is_not_asked_for_is_said(spoiled: Path) -> None:
    changed(spoiled / "image.txt", r"msgspec==[0-9.]+", "msgspec==0.1.0")
    assert locks.differences("image", spoiled) == ["image.txt pins msgspec 0.1.0, not msgspec>=0.19"]


def test_a_package_that_is_missing_and_one_that_is_left_over_are_said(spoiled: Path) -> None:
    changed(spoiled / "image.txt", r"msgspec==", "msgspeck==")
    assert locks.differences("image", spoiled) == [
        "image.txt has msgspeck, which pyproject.toml does not ask for",
        "image.txt lacks msgspec>=0.19, which pyproject.toml asks for",
    ]


def test_a_package_without_hash_is_refused(spoiled: Path) -> None:
    changed(spoiled / "image.txt", r"(msgspec==.+\\\n)(?: +--hash.+\n)+", r"\1")
    with pytest.raises(ValueError, match="pins msgspec without a hash"):
        locks.differences("image", spoiled)
