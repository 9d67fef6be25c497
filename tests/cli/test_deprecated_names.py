"""Names of options and commands that were renamed still work, because manifests in use have them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.agent.state.settings import AgentSettings
from lamina.cli.main import app


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[AgentSettings]:
    """The settings of the agents that commands start."""
    found: list[AgentSettings] = []

    async def run(settings: AgentSettings) -> None:
        found.append(settings)

    monkeypatch.setattr("lamina.agent.run.run", run)
    return found


@pytest.mark.parametrize("option", ["--driver-mount", "--driver-seen-at"])
def test_the_agent_takes_both_names_of_the_option(option: str, started: list[AgentSettings]) -> None:
    result = CliRunner().invoke(app, ["agent", "--node", "n", option, "/driver"])
    assert result.exit_code == 0, result.output
    assert [settings.driver_mount for settings in started] == [Path("/driver")]


@pytest.mark.parametrize("variable", ["LAMINA_DRIVER_MOUNT", "LAMINA_DRIVER_SEEN_AT"])
def test_the_agent_takes_both_names_of_the_variable(variable: str, started: list[AgentSettings]) -> None:
    result = CliRunner().invoke(app, ["agent", "--node", "n"], env={variable: "/driver"})
    assert result.exit_code == 0, result.output
    assert [settings.driver_mount for settings in started] == [Path("/driver")]


def test_the_controller_has_both_names() -> None:
    for name in ("controller", "control"):
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
