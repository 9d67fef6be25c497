"""The demo ends with commands that exist, and that show the lab in a browser."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from lamina.cli.main import app


class StartedLab:
    kubeconfig = Path("/labs/demo/kubeconfig")


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labs that were stopped; none is started."""
    names: list[str] = []

    async def show(kubeconfig: Path) -> None:
        assert kubeconfig == StartedLab.kubeconfig

    monkeypatch.setattr("lamina_lab.cluster.up.up", lambda *_, **__: StartedLab())
    monkeypatch.setattr("lamina_lab.cluster.down.down", names.append)
    monkeypatch.setattr("lamina_lab.cli.demo._show", show)
    return names


@pytest.mark.parametrize(("options", "labs"), [([], ["demo"]), (["--keep"], [])])
def test_the_demo_ends_with_the_dashboard(stopped: list[str], options: list[str], labs: list[str]) -> None:
    done = CliRunner().invoke(app, ["demo", *options])
    assert done.exit_code == 0 and stopped == labs
    assert done.output.splitlines()[-1].endswith("in a browser: lamina lab dashboard --name demo")
    assert ("export KUBECONFIG=/labs/demo/kubeconfig" in done.output) == (not labs)
    for call in re.findall(r": lamina (.*)", done.output):
        command: Any = get_command(app)
        words = call.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        options_of = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options_of, call
