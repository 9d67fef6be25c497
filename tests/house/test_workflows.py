"""The workflows of a public host run the commands of the Makefile, with few rights and pinned actions."""

import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import actionlint

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PUBLISHING = ROOT / "docs/contributing/publishing.md"
MAKE = re.compile(r"(?:sudo )?make ([a-z-]+)((?: [A-Z_]+=\S+)*)")
PINNED = re.compile(r"uses: (?P<action>[^@\s]+)@(?P<commit>[0-9a-f]{40}) # v\d+\.\d+\.\d+")
WRITES = {
    "build": set(),
    "cluster": set(),
    "codeql": {"security-events"},
    "fuzz": {"security-events"},
    "release": {"contents", "packages", "id-token", "attestations"},
    "scorecard": {"security-events", "id-token"},
}
"""What jobs of each workflow may write on the host."""


def read(path: Path) -> dict[str, Any]:
    workflow = yaml.safe_load(path.read_text())
    assert isinstance(workflow, dict)
    return workflow


def commands(path: Path) -> Iterator[str]:
    """What the workflow runs, once for each value of the job's matrix that the command names."""
    for job in read(path)["jobs"].values():
        matrix = (job.get("strategy") or {}).get("matrix") or {}
        for step in job["steps"]:
            command = step.get("run", "").strip()
            keys = re.findall(r"\$\{\{ matrix\.(\w+) \}\}", command)
            for values in itertools.product(*(matrix[key] for key in keys)):
                filled = command
                for key, value in zip(keys, values, strict=True):
                    filled = filled.replace(f"${{{{ matrix.{key} }}}}", value)
                if filled:
                    yield filled


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_command_is_a_target_of_the_makefile(path: Path) -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = phony.split()
    for command in commands(path):
        found = MAKE.fullmatch(command)
        assert found, f"{command!r} is not one `make TARGET`"
        assert found[1] in targets, f"the Makefile has no target {found[1]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_no_more_rights_than_listed(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {}, "no right but those of each job"
    granted: set[str] = set()
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        granted |= {scope for scope, level in job["permissions"].items() if level == "write"}
    assert granted == WRITES[path.stem]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_or_listed(path: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if "uses: " in line]
    listed = yaml.safe_load((GITHUB / "zizmor.yml").read_text())["rules"]["unpinned-uses"]["config"]["policies"]
    page = PUBLISHING.read_text()
    for line in lines:
        if PINNED.fullmatch(line):
            continue
        action = line.removeprefix("uses: ").partition("@")[0]
        (policy,) = [name for name in listed if name != "*" and action.startswith(name.removesuffix("*"))]
        assert f"`{policy.removesuffix('/*')}`" in page, "the page says who pins it"


def test_one_version_of_an_action_is_used_everywhere() -> None:
    pins = {found["action"]: set[str]() for path in WORKFLOWS for found in PINNED.finditer(path.read_text())}
    for path in WORKFLOWS:
        for found in PINNED.finditer(path.read_text()):
            pins[found["action"]].add(found["commit"])
    assert [action for action, commits in pins.items() if len(commits) > 1] == []


def test_the_oldest_supported_python_is_tested() -> None:
    tested = read(GITHUB / "workflows/build.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert tested[0] == required.removeprefix(">=")


def test_what_is_made_of_debians_packages_runs_on_debian_and_knows_its_commit() -> None:
    """Hosts run another system. Git trusts no checkout of another user, and then there is no version."""
    trusts = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    found = set()
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            made = {step.get("run") for step in job["steps"]} & {"make release", "make cluster-test"}
            if made:
                assert job["container"]["image"].endswith("bookworm") and job["env"] == trusts, made
            found |= made
    assert found == {"make release", "make cluster-test"}


def test_what_may_publish_installs_no_packages() -> None:
    called = (MAKE.fullmatch(command) for command in commands(GITHUB / "workflows/release.yml"))
    targets = {each[1] for each in called if each} - {"release", "programs"}
    text = (ROOT / "Makefile").read_text()
    assert {"publish", "login", "sign", "draft", "index"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:$", text, re.MULTILINE), f"{target} needs what is installed before"


def test_dependabot_looks_where_dependencies_are() -> None:
    for update in yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]:
        for folder in update.get("directories") or [update["directory"]]:
            looked = ROOT / folder.lstrip("/")
            files = {"pip": "pyproject.toml", "docker": "*ontainerfile", "github-actions": ".github/workflows/*.yml"}
            assert any(looked.glob(files[update["package-ecosystem"]])) or any(looked.glob("Dockerfile")), folder


def test_actionlint_finds_nothing() -> None:
    assert actionlint.found(*WORKFLOWS) == []


def test_actionlint_finds_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((GITHUB / "workflows/build.yml").read_text().replace("matrix.machine", "matrix.machines"))
    assert ["machines" in line for line in actionlint.found(wrong)] == [True]


def zizmor(*paths: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "zizmor"
    if not program.exists():
        pytest.skip("no zizmor: `pip install zizmor`")
    command = [str(program), "--offline", "--no-progress", "--config", str(GITHUB / "zizmor.yml"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_zizmor_finds_nothing() -> None:
    done = zizmor(GITHUB)
    assert done.returncode == 0, done.stdout


def test_zizmor_finds_an_action_without_a_commit(tmp_path: Path) -> None:
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    unpinned = re.sub(r"checkout@\S+ # ", "checkout@", (GITHUB / "workflows/build.yml").read_text())
    (folder / "build.yml").write_text(unpinned)
    assert "unpinned-uses" in zizmor(tmp_path / ".github").stdout
