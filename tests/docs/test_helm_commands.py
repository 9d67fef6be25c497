"""Every `helm` command of the documentation does what its page says, on a release that was installed with values."""

import re
import shlex
from pathlib import Path

import pytest

from tests.install.helm_release import INSTALLED, NAMESPACE, Release

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "deploy/README.md"])
PLACEHOLDERS = {"REGISTRY": "example.com", "REPOSITORY": "example.com/lamina", "TAG": "v1"}


def commands() -> list[tuple[str, str]]:
    """Each command with its page."""
    found = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        calls = re.findall(r"^ {4,}(helm (?:install|upgrade|rollback) .*)", text, re.MULTILINE)
        found += [(str(page.relative_to(ROOT)), " ".join(call.split())) for call in calls]
    return found


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_helm_command_of_the_documentation_works(page: str, command: str, release: Release) -> None:
    for placeholder, value in PLACEHOLDERS.items():
        command = re.sub(rf"\b{placeholder}\b", value, command)
    _, verb, *arguments = shlex.split(command)
    if verb == "install":
        release.run(verb, *arguments)
        found = release.values(arguments[0], arguments[arguments.index("--namespace") + 1])
        assert found["image"]["repository"] == "example.com/lamina"
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
