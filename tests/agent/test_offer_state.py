"""Each field of what decides a node's offer is set by the one part of the agent that its documentation names."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import lamina.agent
from lamina.agent.inventory import reducer

AGENT = Path(lamina.agent.__file__).parent
REPORTS = re.compile(r"(_?offers|self\._offers|self\._gpus)\.update")


def documented() -> dict[str, str]:
    """The part that sets each field that changes."""
    tree = ast.parse(Path(reducer.__file__).read_text())
    (state,) = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "OfferState"]
    found = {}
    for field, text in zip(state.body, state.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
            said = re.search(r"Set by `([a-z_.]+)`", ast.unparse(text))
            if said is not None:
                found[field.target.id] = said[1]
    return found


def updates(path: Path) -> Iterator[tuple[str, str]]:
    """The fields that a module sets, each with the module. What `run` gives to a part as a function is that part's."""
    tree = ast.parse(path.read_text())
    module = ".".join(path.relative_to(AGENT).with_suffix("").parts)
    parts = {
        name.name: each.module.removeprefix("lamina.agent.")
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom) and each.module
        for name in each.names
    }
    owners = {
        inner: parts.get(ast.unparse(call.func), module)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for value in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(value, ast.Lambda)
        for inner in ast.walk(value)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and REPORTS.fullmatch(ast.unparse(call.func)):
            for keyword in call.keywords:
                yield keyword.arg or "", owners.get(call, module)


def test_each_field_that_changes_is_set_by_the_part_that_is_named() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in AGENT.rglob("*.py"):
        for field, module in updates(path):
            found[field].add(module)
    assert found == {field: {module} for field, module in documented().items()}
