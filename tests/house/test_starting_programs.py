"""Which files start processes without `subprocess`, whose importers .importlinter lists."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
CALLS = {"fork", "posix_spawn", "posix_spawnp", "system", "create_subprocess_exec", "create_subprocess_shell"}
PREFIXES = ("exec", "spawn")
ALLOWED = {
    "lamina/enforcement/run.py",
    "lamina/operations/verify/tenant.py",
    "lamina/ports/kept_tree/keeper.py",
    "lamina/ports/mps/program.py",
    "lamina/ports/time_slices.py",
}


def starts_programs(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_start(node.value.id, node.attr)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def is_start(module: str, name: str) -> bool:
    return module in ("os", "asyncio") and (name in CALLS or (module == "os" and name.startswith(PREFIXES)))


def test_only_known_files_start_programs() -> None:
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if starts_programs(path)}
    assert found == ALLOWED
