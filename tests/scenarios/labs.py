"""What scenarios run on: a lab, started as a user starts it, or another cluster; both asked through a real kubectl."""

import base64
import functools
import json
import os
import ssl
import subprocess
import sys
import urllib.request
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.waiting import wait_until

Object = dict[str, Any]
PATIENCE_S = 120.0
_LOG_END = 3000
"""Characters of each log that a failure shows."""


class Cluster(ABC):
    """Lamina on a cluster, as scenarios ask it: a lab, or Kubernetes itself. `node` is whose GPUs they are about."""

    node: str

    @abstractmethod
    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Standard output, or with `check` off both outputs together."""

    @abstractmethod
    def lamina(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line with this cluster's kubeconfig."""

    @abstractmethod
    def program(self, name: str, folder: Path) -> list[str]:
        """The command that runs kubectl or lamina on this cluster in a folder, or nvidia-smi on the node."""

    def runnable(self, text: str) -> str:
        """Text with manifests, whose images there are."""
        return text

    @abstractmethod
    def ask(self, method: str, path: str) -> Object:
        """What the API server answers, for who asks often: a kubectl each time would keep the machine busy."""

    @abstractmethod
    def metrics(self, part: str) -> str:
        """The page that `controller` serves to Prometheus, or the agent of a node by its name."""

    @property
    @abstractmethod
    def machine(self) -> Path:
        """The simulated machine of `node`."""

    def apply(self, manifest: str) -> None:
        self.kubectl("apply", "-f", "-", stdin=manifest)

    def read(self, path: str) -> Object:
        """What the API server has at a path."""
        return self.ask("GET", path)

    def pods(self, selector: str = "") -> list[Object]:
        items: list[Object] = self.read(f"/api/v1/namespaces/default/pods?labelSelector={quote(selector)}")["items"]
        return items

    def grants(self) -> list[Object]:
        items: list[Object] = self.read("/apis/lamina.dev/v1alpha1/namespaces/default/grants")["items"]
        return items

    def phases(self, selector: str = "") -> dict[str, int]:
        """How many pods are in each phase."""
        found = [pod["status"].get("phase", "") for pod in self.pods(selector)]
        return {phase: found.count(phase) for phase in sorted(set(found))}

    def settled(self, selector: str, expected: dict[str, int]) -> None:
        """Wait for exactly these phases, every Pending pod with a reason."""

        def as_expected() -> bool:
            return self.phases(selector) == expected and all(_has_reason(pod) for pod in self.pods(selector))

        wait_until(as_expected, lambda: f"pods are {self.phases(selector)}, expected were {expected}")

    def running_pod(self, selector: str) -> str:
        """The name of a running pod, as soon as there is one."""
        found: list[str] = []

        def there_is_one() -> bool:
            found[:] = [pod["metadata"]["name"] for pod in self.pods(selector) if pod["status"]["phase"] == "Running"]
            return bool(found)

        wait_until(there_is_one, lambda: f"no pod of {selector} runs: {self.kubectl('describe', 'pods')}")
        return found[0]

    def delete_workloads(self) -> None:
        """Leave the cluster as it was found."""
        for kind in ("apps/v1 deployments", "batch/v1 jobs", "apps/v1 daemonsets", "apps/v1 replicasets"):
            group, plural = kind.split()
            self.ask("DELETE", f"/apis/{group}/namespaces/default/{plural}?propagationPolicy=Orphan")
        self.end_pods()  # who follows owners would give pods all the time that they ask for
        wait_until(lambda: not self.pods(), lambda: f"pods stay: {self.phases()}\n{self.described()}")
        wait_until(lambda: not self.grants(), lambda: "grants stay behind their pods")

    def described(self) -> str:
        """What there is to know of pods that do not do what they should."""
        return self.kubectl("describe", "pods", check=False)

    def end_pods(self, grace_s: int = 1) -> None:
        """Delete all pods, which have so many seconds to end."""
        self.ask("DELETE", f"/api/v1/namespaces/default/pods?gracePeriodSeconds={grace_s}")


@dataclass(frozen=True)
class Lab(Cluster):
    """A running lab. `kubectl` and `lamina` are the commands with this lab's kubeconfig."""

    name: str
    root: Path
    kubeconfig: Path
    kubectl_path: str
    node: str = "node-0"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"KUBECONFIG": str(self.kubeconfig), "LAMINA_LABS": str(self.root)}

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        result = subprocess.run(
            [self.kubectl_path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=PATIENCE_S,
            check=False,
        )
        if check:
            assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
            return result.stdout
        return result.stdout + result.stderr

    def lamina(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return lamina(*arguments, environment=self.environment)

    def program(self, name: str, folder: Path) -> list[str]:
        if name == "kubectl":
            return ["env", f"KUBECONFIG={self.kubeconfig}", self.kubectl_path]
        ours = ["env", f"KUBECONFIG={self.kubeconfig}", f"LAMINA_LABS={self.root}", sys.executable, "-m", "lamina"]
        return ours if name == "lamina" else [*ours, "lab", "exec", "--name", self.name, self.node, "--", name]

    def described(self) -> str:
        logs = [
            f"--- the end of {path.name}\n{path.read_text(errors='replace')[-_LOG_END:]}"
            for path in sorted((self.root / self.name).rglob("*.log"))
        ]
        return "\n".join([super().described(), *logs])

    def ask(self, method: str, path: str) -> Object:
        server, token, trust = _door(self.kubeconfig.read_text())
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(server + path, headers=headers, method=method)
        with urllib.request.urlopen(request, context=trust, timeout=PATIENCE_S) as answer:
            found: Object = json.load(answer)
        return found

    @functools.cached_property
    def _pages(self) -> dict[str, str]:
        listed = self.lamina("lab", "metrics", "--name", self.name).stdout.splitlines()[1:]
        return dict(line.split() for line in listed)

    def metrics(self, part: str) -> str:
        with urllib.request.urlopen(self._pages[part], timeout=PATIENCE_S) as page:
            return str(page.read(), "utf-8")

    @property
    def machine(self) -> Path:
        return self.root / self.name / "n" / self.node.removeprefix("node-") / "machine"


@functools.cache
def _door(kubeconfig: str) -> tuple[str, str, ssl.SSLContext]:
    """Where a lab's API server is, the token that it takes, and what its certificate is checked against."""
    config = yaml.safe_load(kubeconfig)
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return cluster["server"], config["users"][0]["user"]["token"], ssl.create_default_context(cadata=authority)


def _has_reason(pod: Object) -> bool:
    if pod["status"].get("phase") != "Pending":
        return True
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "PodScheduled" and each["status"] == "False" and each["message"] for each in conditions)


def lamina(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "lamina", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=2 * PATIENCE_S,
        check=False,
    )
