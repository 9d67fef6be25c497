"""Commands end with the codes that the documentation lists, and with no others."""

import ast
from collections.abc import Iterator
from pathlib import Path

from lamina.cli.exit_codes import ANSWERS, MEANINGS, ExitCode
from lamina.cli.groups import GROUPS
from lamina.errors import LaminaError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "src/lamina/cli", ROOT / "lab/src/lamina_lab/cli")
OTHERS = {
    "main.py": {"error.exit_code", "128 + number"},  # of an error, whose codes are checked here, and of a signal
    "lab.py": {"machines.execute(name, node, command)"},  # of the program, as of `lamina run`
    "top.py": {"128 + self._signal"},  # of a signal
    "run.py": {
        "run_limited(command, memory=memory, gpu=gpu, simulate=simulate or None, cores=cores, policy=policy, "
        "device=device)"
    },
}
"""What else commands end with."""


def exits() -> Iterator[tuple[str, ast.expr]]:
    """Each call that ends a command with a code, by the file that has it."""
    for path in (path for folder in FOLDERS for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ("sys.exit", "typer.Exit"):
                yield path.name, node.args[0]


def codes(expression: ast.expr) -> set[str]:
    """The codes that an expression can have, as they are written."""
    if isinstance(expression, ast.IfExp):
        return codes(expression.body) | codes(expression.orelse)
    return {ast.unparse(expression)}


def errors(kind: type[LaminaError] = LaminaError) -> Iterator[type[LaminaError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from errors(narrower)


def test_each_command_ends_with_a_documented_code() -> None:
    known = {f"ExitCode.{code.name}" for code in ExitCode}
    found = {(name, code) for name, expression in exits() for code in codes(expression)}
    assert len(found) > 8
    assert {(name, code) for name, code in found if code not in known | OTHERS.get(name, set())} == set()


def test_each_error_ends_a_command_with_a_documented_code() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert {error.__name__ for error in errors() if error.exit_code not in set(ExitCode)} == set()


def test_the_commands_that_answer_are_those_that_can_end_with_no() -> None:
    can = {name for name, expression in exits() if "ExitCode.NO" in codes(expression)}
    files = {f"{command.partition(' ')[0].replace('-', '_')}.py" for command in ANSWERS}
    assert can == files
    assert {command.partition(" ")[0] for command in ANSWERS} <= {name for names in GROUPS.values() for name in names}
