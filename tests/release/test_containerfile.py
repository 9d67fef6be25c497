"""What the Containerfile copies, names and runs as, without building it."""

import re
from pathlib import Path

import pytest

from lamina.install.chart import chart
from release import image

ROOT = Path(__file__).resolve().parents[2]
LINES = [line.split() for line in (ROOT / "Containerfile").read_text().splitlines() if line.strip()]


def copied() -> set[str]:
    """What it takes from this tree."""
    names = [name for word, *names in LINES if word == "COPY" for name in names[:-1]]
    return {name for name in names if not name.startswith(("--from", "/"))}


def test_builders_get_what_is_copied_and_nothing_else() -> None:
    said = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert said[0] == "*"
    assert {line.removeprefix("!") for line in said[1:]} == copied() == {"dist/lamina-*.whl", "locks/image.txt"}


def test_it_runs_as_the_manifests_do() -> None:
    user = re.search(r"runAsNonRoot: true, runAsUser: (\d+)", chart()["templates/_helpers.tpl"])
    assert user and ["USER", f"{user[1]}:{user[1]}"] in LINES


def test_packages_come_by_hash_and_no_base_is_named_twice() -> None:
    text = " ".join(word for line in LINES for word in line)
    assert text.count("pip install") == text.count("--require-hashes") == 1
    assert [line[1] for line in LINES if line[0] == "FROM"] == ["${BUILD_BASE}", "${BASE}"]


def test_a_base_that_may_change_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["image", "image.tar", "--base", "python:3.12-slim"])
    with pytest.raises(SystemExit):
        image.main()
    assert "--base: python:3.12-slim can be another image tomorrow: name it by its digest" in capsys.readouterr().err


def test_a_machine_without_a_builder_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    source = image.Source("1.0.0", "0" * 40, 0)
    with pytest.raises(image.CannotBuild, match="not on PATH: install Debian's package buildah"):
        image.build(tmp_path / "image.tar", "lamina:1", tmp_path / "lamina.whl", source)


def test_a_machine_without_debians_archive_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("buildah", "apt-get", "dpkg-deb"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = image.Source("1.0.0", "0" * 40, 0)
    with pytest.raises(image.CannotBuild, match=r"no source of Debian bookworm packages.*; name another by BASE=NAME@"):
        image.build(tmp_path / "image.tar", "lamina:1", tmp_path / "lamina.whl", source)
