"""A release of the chart in the API server of a lab."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lamina.cli.install import _write_chart
from tests.helm import find_helm
from tests.lab_api.servers import Threaded

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = {"image": {"repository": "example.com/lamina"}, "config": {"sharing": {"memoryScaling": 2}}}
NAMESPACE = ("--namespace", "lamina-system")


class Release:
    """A release in a lab's API server, and a folder as the pages have it."""

    def __init__(self, folder: Path, lab: Threaded) -> None:
        self._folder = folder
        self._program = find_helm()
        lab.server.write_kubeconfig(folder / "kubeconfig")
        (folder / "deploy").symlink_to(ROOT / "deploy")
        _write_chart(folder / "lamina-chart")
        (folder / "values.json").write_text(json.dumps(INSTALLED))

    def run(self, *arguments: str) -> str:
        home = str(self._folder)
        env = {**os.environ, "KUBECONFIG": f"{home}/kubeconfig", "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home}
        done = subprocess.run(
            [self._program, *arguments],
            cwd=self._folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, name: str = "lamina", namespace: str = "lamina-system") -> None:
        self.run(
            "install", name, "lamina-chart", "--namespace", namespace, "--create-namespace", "--values", "values.json"
        )

    def values(self, name: str = "lamina", namespace: str = "lamina-system") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.run("get", "values", name, "--namespace", namespace, "--output", "json")
        )
        return found


@pytest.fixture
def release(tmp_path: Path, lab: Threaded) -> Release:
    return Release(tmp_path, lab)
