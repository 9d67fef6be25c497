"""Kubernetes as scenarios ask it, with Lamina on it: what they run on a lab runs against it too.

Of manifests nothing is changed but the images, which are nowhere to be pulled from here.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.own_images import WORKLOAD
from tests.cluster.components.processes import ENVIRONMENT, LAMINA
from tests.cluster.components.sandboxes import Sandbox
from tests.cluster.queries import situation
from tests.scenarios.labs import Cluster, Object

IMAGE = re.compile(r"""("?\bimage"?: *)("[^"]*"|[^\s,}]+)""")


class Kubernetes(Cluster):
    """`node` is the cluster's first."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster, self._node = cluster, cluster.nodes[0]
        self.node = self._node.name

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        control, binaries = self._cluster.control, self._cluster.binaries
        command = [str(binaries["kubectl"]), "--kubeconfig", str(control.kubeconfig), *arguments]
        command += ["--cache-dir", str(control.folder / "kubectl")] if "--" not in arguments else []
        done = self._run(control.sandbox, command, stdin)
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
            return done.stdout
        return done.stdout + done.stderr

    def program(self, name: str, folder: Path) -> list[str]:
        control, sandbox = self._cluster.control, self._cluster.control.sandbox
        environment = self._cluster.binaries.environment | ENVIRONMENT
        command = {
            "kubectl": [self._cluster.binaries["kubectl"], "--kubeconfig", control.kubeconfig],
            "lamina": ["env", f"KUBECONFIG={control.kubeconfig}", *LAMINA],
            "nvidia-smi": [sys.executable, "-m", "lamina_lab.smi"],
        }[name]
        if name == "nvidia-smi":
            sandbox, environment = self._node.sandbox, environment | self._node.gpus.environment
        words = sandbox.command("sh", "-c", 'cd "$0" && exec "$@"', folder, *command)
        return ["env", "-i", *(f"{key}={value}" for key, value in environment.items()), *words]

    def lamina(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        control = self._cluster.control
        setting = f"KUBECONFIG={control.kubeconfig}"
        return self._run(control.sandbox, ["env", setting, *LAMINA, *arguments])

    def _run(self, sandbox: Sandbox, command: list[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        words = sandbox.command(*command)
        environment = self._cluster.binaries.environment | ENVIRONMENT
        return subprocess.run(
            words, input=stdin or "", capture_output=True, text=True, env=environment, timeout=120, check=False
        )

    def described(self) -> str:
        return situation(self._cluster)

    def ask(self, method: str, path: str) -> Object:
        return self._cluster.control.api.ask(method, path)

    def runnable(self, text: str) -> str:
        return IMAGE.sub(rf'\g<1>"{WORKLOAD}"', text)

    def apply(self, manifest: str) -> None:
        super().apply(self.runnable(manifest))

    def metrics(self, part: str) -> str:
        at = {"controller": (self._cluster.control.sandbox, 8080), self.node: (self._node.sandbox, 9394)}
        sandbox, port = at[part]
        return sandbox.run("curl", "-sf", f"http://127.0.0.1:{port}/metrics")

    @property
    def machine(self) -> Path:
        return self._node.gpus.machine

    def on_node(self, *command: str) -> str:
        """What a program prints on the node, outside of containers."""
        return self._node.sandbox.run(*command, env=self._node.gpus.environment | ENVIRONMENT)

    def file_of_node(self, path: str | Path) -> Path:
        """Where the machine has a file of the node."""
        return Path(f"/proc/{self._node.sandbox.pid}/root{path}")
