"""Files that people give to commands: one that is no YAML, or is none of the expected kind, is refused in one line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.errors import BadInput
from tests.configuration.odd_yaml import ODD_TEXTS

COMMANDS = {
    "config": ["config", "convert", "FILE"],
    "values": ["install", "--values", "FILE"],
    "set": ["install", "--set", "config=TEXT"],
    "simulated configuration": ["simulate", "--nodes", "NODES", "--pods", "NODES", "--config", "FILE"],
    "simulated nodes": ["simulate", "--nodes", "FILE", "--pods", "NODES"],
    "kubeconfig": ["pods", "--kubeconfig", "FILE"],
}
NODES = "kind: Node\nmetadata: {name: n}\n"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_odd_file_is_refused_in_one_line(command: list[str], tmp_path: Path) -> None:
    given, nodes = tmp_path / "given.yaml", tmp_path / "nodes.yaml"
    nodes.write_text(NODES)
    for text in ODD_TEXTS:
        given.write_text(text)
        named = {"FILE": str(given), "NODES": str(nodes), "config=TEXT": f"config={text}"}
        result = CliRunner().invoke(app, [named.get(word, word) for word in command])
        assert isinstance(result.exception, BadInput), (text[:50], result.exception)
        assert len(str(result.exception).splitlines()) == 1, (text[:50], str(result.exception))
