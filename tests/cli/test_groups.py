"""The help of `lamina` lists every command, without importing any."""

import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from lamina.cli.groups import GROUPS
from lamina.cli.main import app

_LISTED = [(name, summary) for names in GROUPS.values() for name, summary in names.items()]
_STARTS = """
import sys
from typer.testing import CliRunner
from lamina.cli.main import app
assert CliRunner().invoke(app, ["--help"]).exit_code == 0
print(*sorted({"numpy", "aiohttp", "grpc", "lamina.cli.why", "lamina.report.cluster_view"} & sys.modules.keys()))
"""


@pytest.mark.parametrize(("name", "summary"), _LISTED)
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str, summary: str) -> None:
    root = get_command(app)
    assert root.commands[name].get_short_help_str(limit=1000) == summary  # type: ignore[attr-defined]


def test_every_command_is_listed() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output
    root = get_command(app)
    assert set(root.commands) == {name for name, _ in _LISTED}  # type: ignore[attr-defined]
    assert [name for name, _ in _LISTED if f"\n  {name} " not in listed] == []


def test_the_help_imports_no_command() -> None:
    found = subprocess.run([sys.executable, "-c", _STARTS], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_a_command_that_does_not_exist_is_refused() -> None:
    ended = CliRunner().invoke(app, ["nonsense"])
    assert ended.exit_code == 2 and "nonsense" in ended.output
