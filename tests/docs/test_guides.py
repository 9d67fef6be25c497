"""The tests on a real cluster find every command of the guides that they execute."""

import re
from pathlib import Path

import pytest

from tests.cluster.components import guides

INSTALLED = Path(__file__).resolve().parents[1] / "cluster/installed"
EXECUTED = sorted(
    {
        beginning
        for path in INSTALLED.glob("*.py")
        for beginning in re.findall(r'(?:documented|\.command)\("([^"]+)"', path.read_text())
    }
)


@pytest.mark.parametrize("beginning", EXECUTED)
def test_a_command_that_the_cluster_tests_execute_is_in_the_guides(beginning: str) -> None:
    assert guides.command(beginning).startswith(beginning)


def test_the_cluster_tests_execute_commands_of_the_guides() -> None:
    assert len(EXECUTED) > 9
