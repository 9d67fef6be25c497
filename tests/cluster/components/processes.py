"""Lamina as programs of the sandboxes: the controller and a scheduler with the control plane, on each node an agent and
an MPS service.

This is Lamina without its packaging: no image, no accounts of its own, no Service.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import lamina
import lamina_lab
from lamina.configuration import DEFAULT, Config
from lamina.dialects import resource_names, scheduler_names
from lamina.ports.kube import NODES
from tests.cluster.components import network
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.node import RealNode

LAMINA = (sys.executable, "-m", "lamina")
SOURCES = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (lamina, lamina_lab))
"""Where Python finds both distributions."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/root", "PYTHONPATH": SOURCES}
"""What programs of Lamina see."""
EXTENDER_PORT, ADMISSION_PORT = 8080, 8443
EXTENDER = f"127.0.0.1:{EXTENDER_PORT}"
LEADER_PROXY = Path(__file__).with_name("leader_proxy.py")
NONSENSE = "nvidia.com/gpucores"


class Processes:
    """Lamina on a cluster, with agents on `nodes` (None: on all); its parts may be killed and started by tests.

    `config` is the whole configuration. Several `replicas` of the controller are reached through a door to their
    leader. With `dra` the agents serve ResourceClaims, and with `binding` they prepare them before pods are bound.
    """

    def __init__(
        self,
        cluster: RealCluster,
        config: Config | None = None,
        nodes: Sequence[RealNode] | None = None,
        replicas: int = 1,
        *,
        dra: bool = False,
        binding: bool = False,
    ) -> None:
        self._cluster, self._config = cluster, config or DEFAULT
        self._of_claims = [*(["--dra"] if dra else []), *(["--dra-binding-conditions"] if binding else [])]
        self._folder = cluster.folder / "lamina"
        self._folder.mkdir(exist_ok=True)
        control = cluster.control
        self.controllers = [self._replica(number, replicas) for number in range(replicas)]
        self.admission = self._admission()
        door = [sys.executable, "-I", LEADER_PROXY, *(str(EXTENDER_PORT + i) for i in range(replicas + 1))]
        self._door = self._daemon("leader-door", door) if replicas > 1 else None
        command: list[str | Path] = [cluster.binaries["kube-scheduler"], "--config", self._write_scheduler()]
        command += ["--secure-port", "10269", "--cert-dir", self._folder]
        log = self._folder / "scheduler.log"
        self.scheduler = Daemon(control.sandbox, "lamina-scheduler", command, cluster.binaries.environment, log)
        self.agents = {node.name: self._agent(node) for node in nodes or cluster.nodes}
        self.mps = {node.name: self._mps(node) for node in nodes or cluster.nodes}

    def _replica(self, number: int, replicas: int) -> Daemon:
        control = self._cluster.control
        words = ["controller", "--kubeconfig", control.kubeconfig, "--admission", f"{network.CONTROL}:{ADMISSION_PORT}"]
        words += ["--dra"] if self._of_claims else []
        if replicas == 1:
            return self._daemon("controller", [*LAMINA, *words, "--extender-http-bind", EXTENDER])
        words += ["--extender-bind", "127.0.0.1:0"]
        words += ["--extender-http-bind", f"127.0.0.1:{EXTENDER_PORT + 1 + number}"]
        words += ["--identity", f"controller-{number}"]
        return self._daemon(f"controller-{number}", [*LAMINA, *words])

    def _admission(self) -> Daemon:
        words = ["admission", "--kubeconfig", self._cluster.control.kubeconfig]
        words += ["--bind", f":{ADMISSION_PORT}", "--host", network.CONTROL]
        return self._daemon("admission", [*LAMINA, *words])

    def _daemon(self, name: str, command: list[str | Path]) -> Daemon:
        """A program of the control plane's sandbox."""
        return Daemon(self._cluster.control.sandbox, name, command, ENVIRONMENT, self._folder / f"{name}.log")

    @property
    def controller(self) -> Daemon:
        """The controller, where there is one."""
        (found,) = self.controllers
        return found

    def _agent(self, node: RealNode) -> Daemon:
        words = ["agent", "--node", node.name, "--kubeconfig", self._cluster.control.kubeconfig]
        words += ["--driver-dir", node.gpus.driver, *self._of_claims]
        environment = ENVIRONMENT | node.gpus.environment
        return Daemon(node.sandbox, "agent", [*LAMINA, *words], environment, self._folder / f"agent-{node.name}.log")

    def _mps(self, node: RealNode) -> Daemon:
        words = ["mps", "--mps-control", node.gpus.driver / "nvidia-cuda-mps-control"]
        environment = ENVIRONMENT | node.gpus.environment
        return Daemon(node.sandbox, "mps", [*LAMINA, *words], environment, self._folder / f"mps-{node.name}.log")

    @property
    def _all(self) -> list[Daemon]:
        door = [self._door] if self._door else []
        return [*self.controllers, self.admission, *door, self.scheduler, *self.mps.values(), *self.agents.values()]

    def start(self) -> None:
        """Start all parts, and return when all of them answer."""
        for daemon in self._all:
            daemon.start()
        self.wait()

    def wait(self) -> None:
        """Until each node offers devices, and admission answers."""
        for name, agent in self.agents.items():
            agent.until(lambda name=name: self._offers(name), f"a GPU of {name} in kubelet's hands")
        self.controllers[0].until(self._admits, "a word of admission")

    def _offers(self, node: str) -> bool:
        """Whether the node has GPUs under NVIDIA's name, or under the one that `renameByDefault` gives them."""
        try:
            got = self._cluster.read(NODES.path(name=node))["status"]["allocatable"]
        except Unavailable:
            return False
        return any(got.get(name, "0") != "0" for name in ("nvidia.com/gpu", "nvidia.com/gpu.shared"))

    def _admits(self) -> bool:
        """Whether a pod that asks for nonsense is refused; nothing is made."""
        container = {"name": "main", "image": "none", "resources": {"limits": {NONSENSE: 101}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": {"containers": [container]}}
        try:
            self._cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
        except Unavailable as refused:
            return NONSENSE in str(refused)
        return False

    def reboot(self, node: RealNode) -> None:
        """Start the agent and the MPS service of a node that was rebooted."""
        self.mps[node.name] = self._mps(node)
        self.mps[node.name].start()
        self.agents[node.name] = self._agent(node)
        self.agents[node.name].start()

    def remove(self) -> None:
        """Stop all parts, and let the API server do without admission."""
        for daemon in reversed(self._all):
            daemon.stop()
        self._cluster.kubectl("delete", "mutatingwebhookconfigurations", "lamina.dev")

    def _write_scheduler(self) -> Path:
        version = self._cluster.binaries.version
        login = self._cluster.control.authority.kubeconfig("lamina-scheduler", "lamina-scheduler", ("system:masters",))
        names = sorted({*scheduler_names(self._config)} - {"default-scheduler"})
        document: dict[str, Any] = {
            "apiVersion": f"kubescheduler.config.k8s.io/{'v1beta1' if version < (1, 25) else 'v1'}",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(login)},
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": name} for name in names],
            "extenders": [self._extender()],
        }
        if version < (1, 25):
            document |= {"healthzBindAddress": "127.0.0.1:10268", "metricsBindAddress": "127.0.0.1:10268"}
        path = self._folder / "scheduler.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def _extender(self) -> dict[str, Any]:
        served = resource_names(self._config)
        ignored = {name for names in served for name in names.ignored_by_scheduler}
        return {
            "urlPrefix": f"http://{EXTENDER}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "weight": 1,
            "nodeCacheCapable": True,
            "ignorable": False,
            "httpTimeout": "30s",
            "managedResources": [
                {"name": name, "ignoredByScheduler": name in ignored} for names in served for name in names.all
            ],
        }
