"""Which packages and modules may open, write, rename and look for files themselves; all others use a port."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
ALLOWED = {
    "lamina/ports": "the ports are what speaks to the file system",
    "lamina/enforcement": "limits and usage files are mapped and locked as the facade does in containers",
    "lamina/native.py": "finds the compiled parts next to the package",
    "lamina/install/chart.py": "reads the chart next to the package",
    "lamina/operations/dashboard/answers.py": "finds the files of the page next to the package",
    "lamina/operations/verify/machine.py": "makes folders for the programs under test",
    "lamina/operations/verify/overhead.py": "writes the kernels that its program loads",
    "lamina/operations/verify/views.py": "looks for nvidia-smi, which it starts",
    "lamina/ports/certificates.py": "the ssl module reads certificates and keys from files only",
    "lamina/controller/extender/client_certificates.py": "the certificates of a mounted Secret",
    "lamina/cli/screen/live_terminal.py": "keeps what others print while the screen is shown, in a file without a name",
}
"""Each with its reason."""
MODULES = {"fcntl", "glob", "mmap", "shutil", "tempfile"}
"""Modules of which every function counts."""
FUNCTIONS = {
    *("access", "chmod", "chown", "fchmod", "fchown", "fdopen", "fstat", "fsync", "ftruncate", "link", "listdir"),
    *("lstat", "makedirs", "mkdir", "mkfifo", "mknod", "open", "posix_fallocate", "pread", "pwrite", "readlink"),
    *("remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir", "stat", "statvfs", "symlink"),
    *("truncate", "unlink", "utime", "walk"),
}
"""Of `os`."""
METHODS = {
    *("chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_fifo", "is_mount", "is_socket", "is_symlink"),
    *("iterdir", "lstat", "mkdir", "open", "owner", "read_bytes", "read_text", "readlink", "rename", "rglob", "rmdir"),
    *("samefile", "stat", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
"""Of `Path`; their names mean nothing else here."""


def accesses(source: str) -> Iterator[str]:
    """The calls in a module that reach the file system."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and is_access(node):
            yield f"line {node.lineno}: {ast.unparse(node.func)}()"


def is_access(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    name, owner = function.attr, ast.unparse(function.value)
    if owner in ("os", "os.path") or owner in MODULES:
        return owner in MODULES or name in (FUNCTIONS if owner == "os" else METHODS | {"exists", "isfile", "isdir"})
    # str.replace has two arguments, Path.replace one.
    return name in METHODS or (name == "replace" and len(call.args) == 1 and not call.keywords)


def allowed(module: str) -> bool:
    return any(module == place or module.startswith(f"{place}/") for place in ALLOWED)


def found() -> dict[str, list[str]]:
    """By module, the calls that reach the file system."""
    modules = {str(path.relative_to(SOURCE)): list(accesses(path.read_text())) for path in SOURCE.rglob("*.py")}
    return {module: calls for module, calls in modules.items() if calls}


def test_only_known_places_use_files() -> None:
    assert {module: calls for module, calls in found().items() if not allowed(module)} == {}


@pytest.mark.parametrize("place", ALLOWED)
def test_every_place_on_the_list_uses_files(place: str) -> None:
    assert any(module == place or module.startswith(f"{place}/") for module in found())


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("open(path)", True),
        ("path.open('rb')", True),
        ("Path(name).read_text()", True),
        ("(folder / name).write_bytes(content)", True),
        ("draft.replace(path)", True),
        ("os.open(path, os.O_RDONLY)", True),
        ("os.path.exists(path)", True),
        ("os.path.isfile(path)", True),
        ("shutil.which('nvidia-smi')", True),
        ("tempfile.mkdtemp()", True),
        ("text.replace('a', 'b')", False),
        ("structs.replace(gpu, index=1)", False),
        ("os.getpid()", False),
        ("os.path.join(a, b)", False),
        ("files.has_file(path)", False),
        ("path.with_name('x')", False),
    ],
)
def test_what_counts_as_using_files(source: str, counts: bool) -> None:
    assert bool(list(accesses(source))) == counts
