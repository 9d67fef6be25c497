"""One version for everything: from the commit, from its tag, or from the source distribution; tests of version.py."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from lamina import __version__
from lamina.install.chart import chart_version
from version import FILE, ROOT, TAG, image_tag, version

WHO = {"GIT_CONFIG_GLOBAL": os.devnull} | {
    f"GIT_{who}_{what}": f"{what.lower()}@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | WHO).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository on the way to 1.3.0, two commits after it began."""
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "--quiet")
    for text in ("1.2.0.dev", "1.3.0.dev", None, None):
        if text is not None:
            (tree / FILE).write_text(f"{text}\n")
            git(tree, "add", FILE)
        git(tree, "commit", "--quiet", "--allow-empty", "--message", f"to {text}")
    return tree


def commit(tree: Path) -> str:
    return f"g{git(tree, 'rev-parse', 'HEAD')[:7]}"


def test_between_releases_it_counts_commits_and_needs_no_tags(tree: Path, tmp_path: Path) -> None:
    expected = f"1.3.0.dev2+{commit(tree)}"
    assert version(tree) == expected
    git(tree, "tag", "v1.2.0", "HEAD~1")
    git(tmp_path, "clone", "--quiet", "--no-tags", str(tree), "clone")
    assert version(tree) == version(tmp_path / "clone") == expected
    assert image_tag(expected) == expected.replace("+", "_")


@pytest.mark.parametrize(("tag", "expected"), [("v1.3.0", "1.3.0"), ("v1.3.0rc1", "1.3.0rc1"), ("v1.3", None)])
def test_the_tag_of_a_release_is_its_version(tag: str, expected: str | None, tree: Path) -> None:
    git(tree, "tag", "--annotate", "--message", "as releases have it", tag)
    assert version(tree) == (expected or f"1.3.0.dev2+{commit(tree)}")


def test_what_is_not_committed_is_said(tree: Path) -> None:
    (tree / "more").write_text("not tracked")
    assert "dirty" not in version(tree)
    (tree / FILE).write_text("1.4.0.dev\n")
    assert version(tree) == f"1.4.0.dev2+{commit(tree)}.dirty"
    git(tree, "tag", "v1.4.0")
    assert version(tree) == "1.4.0+dirty"


def test_a_shallow_clone_knows_its_commit_and_does_not_count(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{tree}", "shallow")
    assert version(tmp_path / "shallow") == f"1.3.0.dev0+{commit(tree)}"


def test_without_git_it_is_unknown(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tree / "unpacked"
    inner.mkdir()
    (inner / FILE).write_text("1.3.0.dev\n")
    assert version(inner) == "1.3.0.dev0+unknown", "the commit is that of another project"
    monkeypatch.setenv("PATH", "")
    assert version(tree) == "1.3.0.dev0+unknown"


def test_a_source_distribution_keeps_its_own(tree: Path) -> None:
    (tree / FILE).write_text("1.2.0.dev7+g1234567\n")
    assert version(tree) == "1.2.0.dev7+g1234567"


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("0.2.0", "0.2.0"),
        ("0.2.0rc1", "0.2.0-rc.1"),
        ("0.2.0.dev42+g1a2b3c4", "0.2.0-dev.42+g1a2b3c4"),
        ("0.2.0.dev0+unknown", "0.2.0-dev.0+unknown"),
    ],
)
def test_charts_have_it_as_helm_requires(of: str, expected: str) -> None:
    assert chart_version(of) == expected


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


def test_the_next_version_is_newer_than_each_release() -> None:
    base = (ROOT / FILE).read_text().strip()
    if git(ROOT, "tag", "--points-at", "HEAD"):
        pytest.skip("this commit is a release, which VERSION names")
    released = [tag for tag in git(ROOT, "tag", "--merged", "HEAD").split() if TAG.fullmatch(tag)]
    assert all(numbers(tag) < numbers(base) or "rc" in tag for tag in released), "raise the version in VERSION"
    assert re.fullmatch(r"\d+\.\d+\.\d+\.dev", base)


def test_the_lab_is_for_this_version() -> None:
    base = (ROOT / FILE).read_text().strip()
    needed = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]["dependencies"]
    assert f"lamina~={base}0" in needed


def test_what_is_installed_has_a_version_of_this_tree() -> None:
    assert numbers(__version__) == numbers((ROOT / FILE).read_text())
