"""`lamina completion`: what shells offer is what the commands take."""

import shlex
import shutil
import subprocess
from functools import cache

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from lamina.cli.completion import vocabulary
from lamina.cli.main import app, main
from lamina.errors import BadInput

SHELLS = ("bash", "zsh", "fish")


@cache
def script(shell: str) -> str:
    result = CliRunner().invoke(app, ["completion", shell])
    if result.exception is not None:
        raise result.exception
    return result.output


def completed(*words: str) -> set[str]:
    """What bash offers for the last word."""
    line = shlex.join(("lamina", *words))
    asked = f"COMP_WORDS=({line}) COMP_CWORD={len(words)}; _lamina; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    source = f"{script('bash')}\n{asked}"
    return set(subprocess.run(["bash", "-c", source], capture_output=True, text=True, check=True).stdout.split())


def test_bash_offers_commands_and_their_options() -> None:
    assert {"gpus", "pods", "why", "completion"} <= completed("")
    assert completed("mig", "a") == {"apply"}
    assert completed("pods", "--all") == {"--all-namespaces"}
    assert completed("pods", "-n", "team", "--k") == {"--kubeconfig"}
    assert completed("absent", "--nothing") == set()


def test_no_default_in_a_help_text_is_in_parentheses() -> None:
    """The library adds them to defaults that are given as texts, as if they were computed."""
    root = get_command(app)
    for path in vocabulary(root, root.make_context("lamina", [], resilient_parsing=True)):
        shown = CliRunner().invoke(app, [*path.split(), "--help"], terminal_width=300, color=False)
        assert shown.exit_code == 0 and "[default: (" not in shown.output, shown.output


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_has_every_command_and_is_valid(shell: str) -> None:
    root = get_command(app)
    words = vocabulary(root, root.make_context("lamina", [], resilient_parsing=True))
    assert "cordon gpu" in words and "--sort" in words["gpus"]
    assert [path for path in words if path not in script(shell)] == []
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script(shell), text=True, check=True)


def test_another_shell_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^SHELL must be one of bash, zsh, fish, got 'tcsh'$"):
        script("tcsh")


@pytest.mark.parametrize("asked", ["bash_source", "source_zsh", ""])
def test_the_variable_of_other_programs_is_refused_with_the_command(
    asked: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_LAMINA_COMPLETE", asked)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "lamina: _LAMINA_COMPLETE is not supported; use `source <(lamina completion bash)`\n"
