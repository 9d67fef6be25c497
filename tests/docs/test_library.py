"""The page about Lamina as a library runs as it is written, and the packages that it shows have faces."""

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FACES = ("lamina.placement", "lamina.ledger", "lamina.dialects", "lamina.enforcement", "lamina.ports.kube")


def test_the_examples_run_as_written() -> None:
    ran = doctest.testfile(str(ROOT / "docs" / "how-to" / "use-as-a-library.md"), module_relative=False)
    assert ran.attempted > 15 and ran.failed == 0


@pytest.mark.parametrize("name", FACES)
def test_a_face_lists_what_it_imports_and_nothing_else(name: str) -> None:
    """As in httpx's test of exported members: what is imported there is public, sorted, and documented."""
    package = import_module(name)
    imported = {
        alias.asname or alias.name
        for node in ast.parse(Path(package.__file__ or "").read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert set(package.__all__) == imported
    assert [each for each in package.__all__ if not getattr(package, each).__doc__] == []
