"""Lamina as people install it: images on the nodes, and the commands of the guides in docs/how-to in a shell.

What differs from the guides stands in one file of values: where the simulated driver is, and how the scheduler
finds the controller in a cluster without names.
"""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from lamina.core.component_names import DEFAULT_NAMESPACE
from release.image import CannotBuild
from tests import helm
from tests.cluster.components import guides, images
from tests.cluster.components.audit import NAMESPACE
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.own_images import WORKLOAD
from tests.cluster.components.processes import SOURCES
from tests.release import built

PROJECT = Path(__file__).parents[3]
REGISTRY = "stage.local"
OF_EXAMPLES = "docker.io/nvidia/cuda:12.4.1-base-ubuntu22.04"
EXTENDER = "https://$(LAMINA_CONTROLLER_SERVICE_HOST):8445"


class Installation:
    """The shell of an administrator, and the commands of the installation guides."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self.folder = cluster.folder / "installation"
        self.folder.mkdir()
        self._values = self.folder / "values.yaml"
        values = {"agent": {"driverDir": str(cluster.nodes[0].gpus.driver)}, "scheduler": {"extenderUrl": EXTENDER}}
        self._values.write_text(yaml.safe_dump(values))
        self._write_programs()

    def _write_programs(self) -> None:
        """What the shell has on its PATH before the system's."""
        programs = self.folder / "bin"
        programs.mkdir()
        kubectl = f"{self._cluster.binaries['kubectl']} --cache-dir {self.folder / 'kubectl'}"
        called = {"lamina": f"{sys.executable} -m lamina", "kubectl": kubectl}
        if found := helm.located():
            called["helm"] = found
        for name, command in called.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (programs / name).chmod(0o755)

    @property
    def has_helm(self) -> bool:
        return (self.folder / "bin/helm").exists()

    @property
    def image(self) -> str:
        return built.NAME

    def load_images(self) -> None:
        """Lamina's image, kube-scheduler's of this version, and under its own name the one that examples use."""
        scheduler = self._scheduler()
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._cluster.load, [self._ours(), scheduler]))
        scheduler.unlink()
        for node in self._cluster.nodes:
            node.ctr("images", "tag", "--force", WORKLOAD, OF_EXAMPLES)

    def _ours(self) -> Path:
        """The one that people build, of this tree."""
        try:
            return built.archive()
        except CannotBuild as error:
            raise Unavailable(str(error)) from error

    def _scheduler(self) -> Path:
        """The cluster's program under the name by which everybody finds kube-scheduler."""
        root = self.folder / "kube-scheduler"
        (root / "usr/local/bin").mkdir(parents=True)
        shutil.copy2(self._cluster.binaries["kube-scheduler"], root / "usr/local/bin")
        version = self._cluster.kubectl("get", "node", "node1", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}")
        name = f"registry.k8s.io/kube-scheduler:{version}"
        archive = images.write(self.folder / "scheduler.tar", name, root, env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
        shutil.rmtree(root)
        return archive

    def command(self, beginning: str, node: str = "") -> str:
        """The guides' only command that begins so, for this cluster."""
        command = guides.command(beginning).replace("REGISTRY", REGISTRY).replace("NODE", node)
        command = command.replace(DEFAULT_NAMESPACE, NAMESPACE)
        command = re.sub(r"^lamina install(?! --chart)", rf"\g<0> --namespace {NAMESPACE}", command)
        command = re.sub(r"^lamina (reset|uninstall)\b", r"\g<0> --yes", command)
        return re.sub(r"^(lamina install|helm install \S+ \S+) --(?!chart)", rf"\1 --values {self._values} --", command)

    def shell(self, script: str, timeout: float = 120) -> str:
        """What the script prints; run in the project's folder. Raises Unavailable where a command of it fails."""
        path = f"{self.folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self._cluster.control.kubeconfig)}
        environment |= {"PYTHONPATH": SOURCES, "COLUMNS": "200"}
        words = ["bash", "-euo", "pipefail", "-c", f"cd {PROJECT}; {script}"]
        return self._cluster.control.sandbox.run(*words, env=environment, timeout=timeout)

    def documented(self, beginning: str, node: str = "", timeout: float = 120) -> str:
        """Run the guides' only command that begins so."""
        return self.shell(self.command(beginning, node), timeout)
