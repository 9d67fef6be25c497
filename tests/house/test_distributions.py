"""Two distributions: the product without a simulator, and each declares what it imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"lamina": ROOT / "src" / "lamina", "lamina-lab": ROOT / "lab" / "src" / "lamina_lab"}
PROJECTS = {"lamina": ROOT / "pyproject.toml", "lamina-lab": ROOT / "lab" / "pyproject.toml"}
PROVIDES_MORE = {"pynvml": "nvidia-ml-py", "google": "protobuf"}
"""Distributions of import names that several distributions may provide."""


def declared(distribution: str) -> set[str]:
    project = tomllib.loads(PROJECTS[distribution].read_text())["project"]
    return {normalized(re.match(r"[A-Za-z0-9._-]+", text)[0]) for text in project["dependencies"]}  # type: ignore[index]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(distribution: str) -> set[str]:
    """The top-level packages that the sources import, whether at the top of a module or in a function."""
    names = set()
    for path in SOURCES[distribution].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {SOURCES[distribution].name, "grpc_tools"}


@pytest.mark.parametrize("distribution", PROJECTS)
def test_everything_imported_is_declared(distribution: str) -> None:
    providers = packages_distributions()
    missing = {}
    for name in imported(distribution):
        known = [PROVIDES_MORE[name]] if name in PROVIDES_MORE else providers.get(name, [name.replace("_", "-")])
        if not {normalized(provider) for provider in known} & declared(distribution):
            missing[name] = known
    assert missing == {}


def test_the_product_does_not_import_the_lab() -> None:
    assert "lamina_lab" not in imported("lamina")


def test_the_sources_of_the_product_have_no_simulator() -> None:
    """What meson installs as the wheel of lamina is src/lamina and what native/ builds."""
    built = [*SOURCES["lamina"].rglob("*"), *(ROOT / "native").rglob("*")]
    names = [str(path.relative_to(ROOT)) for path in built if "_native" not in path.parts and "tests" not in path.parts]
    assert [name for name in names if re.search(r"simgpu|/smi/|/lab/", name)] == []
