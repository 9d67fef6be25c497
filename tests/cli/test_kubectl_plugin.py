"""`kubectl lamina`: kubectl finds the commands and completes them, and messages say how they were called."""

import importlib
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.cli.kubectl_plugin import completions
from tests.kubectl import Kubectl

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    """kubectl with the console scripts on its PATH as the wheel installs them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, target in SCRIPTS.items():
        module, _, function = target.partition(":")
        script = folder / name
        script.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)
    found = Kubectl(tmp_path / "kubeconfig", tmp_path)
    # Where a second one is on the PATH, as in an active virtual environment, kubectl's list of plug-ins is an error.
    others = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "kubectl-lamina").exists()]
    found.environment["PATH"] = ":".join([str(folder), *others])
    return found


def test_kubectl_runs_the_commands_under_its_own_name(kubectl: Kubectl) -> None:
    assert kubectl("lamina", "--help").splitlines()[0] == "Usage: kubectl lamina [OPTIONS] COMMAND [ARGS]..."
    assert kubectl("lamina", "why", "--help").splitlines()[0].startswith("Usage: kubectl lamina why [OPTIONS] ")
    assert "V100-SXM2-32GB" not in kubectl("lamina", "mig", "profiles", "a100")
    assert "kubectl-lamina" in kubectl("plugin", "list", "--name-only").split()


def test_errors_and_exit_codes_pass_through_kubectl(kubectl: Kubectl) -> None:
    ended = kubectl.run("lamina", "pods", "-o", "xml")
    assert ended.returncode == 2
    assert ended.stderr.startswith("kubectl lamina: ") and len(ended.stderr.splitlines()) == 1


def test_kubectl_completes_commands_and_options(kubectl: Kubectl) -> None:
    assert set(kubectl("__complete", "lamina", "mig", "").split()) >= {"apply", "list", "profiles"}
    assert "--sort-by" in kubectl("__complete", "lamina", "gpus", "--so").split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["wh"], ["why"]),
        (["mig", "li"], ["list"]),
        (["mig", "list", "--wa"], ["--watch"]),
        (["pods", "-n", "team", "--all"], ["--all-namespaces"]),
        (["absent", "x"], []),
    ],
)
def test_the_word_at_the_end_is_completed(words: list[str], offered: list[str]) -> None:
    assert completions(words) == offered


def test_nothing_yet_offers_all_commands() -> None:
    assert {"why", "gpus", "--version"} <= set(completions([]))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_of_the_wheel_is_there(name: str) -> None:
    module, _, function = SCRIPTS[name].partition(":")
    start: Callable[[], None] = getattr(importlib.import_module(module), function)
    assert callable(start)


def test_a_sentence_names_commands_as_they_were_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lamina.cli import main
    from lamina.errors import BadInput

    def refuse(prog_name: str) -> None:
        raise BadInput("Lamina is not installed; see `lamina install`")

    monkeypatch.setattr(main, "app", refuse)
    with pytest.raises(SystemExit) as ended:
        main.main("kubectl lamina")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "kubectl lamina: Lamina is not installed; see `kubectl lamina install`\n"
