"""Every `helm` command of the documentation does what its page says, on a release that was installed with values."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helm import find_helm
from tests.lab_api.servers import Threaded

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "deploy/README.md"])
INSTALLED = {"image": {"repository": "example.com/lamina"}, "config": {"sharing": {"memoryScaling": 2}}}
PLACEHOLDERS = {"REGISTRY": "example.com", "REPOSITORY": "example.com/lamina"}


def commands() -> list[tuple[str, str]]:
    """Each command with its page."""
    found = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        calls = re.findall(r"^ {4,}(helm (?:install|upgrade|rollback) .*)", text, re.MULTILINE)
        found += [(str(page.relative_to(ROOT)), " ".join(call.split())) for call in calls]
    return found


class Release:
    """A release in a lab's API server, and a folder as the pages have it."""

    def __init__(self, folder: Path, lab: Threaded) -> None:
        self._folder = folder
        self._program = find_helm()
        lab.server.write_kubeconfig(folder / "kubeconfig")
        (folder / "deploy").symlink_to(ROOT / "deploy")
        (folder / "lamina-chart").symlink_to(ROOT / "deploy/helm/lamina")
        (folder / "values.json").write_text(json.dumps(INSTALLED))

    def run(self, *arguments: str) -> str:
        home = str(self._folder)
        env = {**os.environ, "KUBECONFIG": f"{home}/kubeconfig", "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home}
        done = subprocess.run(
            [self._program, *arguments],
            cwd=self._folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self) -> None:
        self.run("install", "lamina", "lamina-chart", *NAMESPACE, "--create-namespace", "--values", "values.json")

    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("get", "values", "lamina", *NAMESPACE, "--output", "json"))
        return found


NAMESPACE = ("--namespace", "lamina-system")


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    lab = Threaded()
    yield Release(tmp_path, lab)
    lab.close()


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_helm_command_of_the_documentation_works(page: str, command: str, release: Release) -> None:
    for placeholder, value in PLACEHOLDERS.items():
        command = re.sub(rf"\b{placeholder}\b", value, command)
    _, verb, *arguments = shlex.split(command)
    if verb == "install":
        release.run(verb, *arguments)
        assert release.values()["image"] == INSTALLED["image"]
        return
    release.install()
    if verb == "rollback":
        release.run(
            "upgrade", "lamina", "lamina-chart", *NAMESPACE, "--values", "values.json", "--set", "agent.mig=true"
        )
    release.run(verb, *arguments)
    kept = {key: value for key, value in release.values().items() if key in INSTALLED}
    assert kept == INSTALLED, f"{page}: {command} loses values of the installation"


def test_an_upgrade_that_names_no_values_is_refused(release: Release) -> None:
    """The null control: Helm starts from the chart's defaults, which have no image."""
    release.install()
    with pytest.raises(AssertionError, match="the value image\\.repository must name a registry"):
        release.run("upgrade", "lamina", "lamina-chart", *NAMESPACE, "--set", "agent.mig=true")


def test_commands_are_found() -> None:
    assert len(commands()) >= 5
