"""One Lamina on a cluster for all rows of the documents, whose tests run against it as against a lab."""

import functools
import json
from typing import Any

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.pod_status import runs_containers
from lamina.ports.kube import CLUSTER_POLICIES
from lamina_lab import simgpu
from lamina_lab.cluster import operator_objects
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.processes import Processes
from tests.cluster.kubernetes import Kubernetes
from tests.scenarios.rows import Rows
from tests.waiting import wait_until

MACHINE = {"driver": "550.54.15", "cuda": "12.4"}
"""Of a node whose document names no driver."""
FRESH = {"spec": {"devicePlugin": None, "mig": {"strategy": "none"}}}
LABELS = ("nvidia.com/device-plugin.config", "nvidia.com/mig.config")
MANAGED = ("default", "kube-node-lease", "kube-public", "kube-system")


class Replay(Kubernetes):
    """Lamina with one agent, on the first node, whose GPUs may be others for each group of rows."""

    def __init__(self, cluster: RealCluster) -> None:
        super().__init__(cluster)
        self._processes = Processes(cluster, nodes=[self._node])
        for name in (operator_objects.NAMESPACE, DEFAULT_NAMESPACE):
            self.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        self._bring_operator()
        self.configure("")
        self._processes.start()

    def _bring_operator(self) -> None:
        """The kind and the policy that NVIDIA's operator would have brought."""
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.apply(json.dumps(kind | operator_objects.definition()))
        policy = {"apiVersion": CLUSTER_POLICIES.api_version, "kind": CLUSTER_POLICIES.kind}
        policy |= {"metadata": {"name": operator_objects.POLICY}} | FRESH

        def made() -> bool:
            self.kubectl("apply", "-f", "-", stdin=json.dumps(policy), check=False)
            return operator_objects.POLICY in self.kubectl("get", "clusterpolicies", check=False)

        wait_until(made, lambda: "the API server does not serve ClusterPolicy")

    def end_pods(self, grace_s: int = 1) -> None:
        """By force once kubelet has reported that containers have ended: it takes ten seconds more to remove a pod.

        One by one at first: where a pod waits for a node, Kubernetes 1.20 gives none that it deletes together with it
        any time, and the controller then counts their GPUs until it is sure that nothing runs.
        """
        self.kubectl("delete", "pods", "--all", f"--grace-period={grace_s}", "--wait=false")
        tasks = functools.partial(self._node.ctr, "tasks", "ls", "-q")
        wait_until(lambda: not tasks(), lambda: f"containers stay: {tasks()}")
        wait_until(lambda: not any(map(runs_containers, self.pods())), lambda: "kubelet reports no end")
        super().end_pods(0)

    def configure(self, text: str) -> None:
        """Put another configuration of Lamina in force."""
        meta = {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {CONFIG_MAP_KEY: text}}
        self.apply(json.dumps(whole))

    def serve(self, rows: Rows) -> None:
        """What a lab with its options and configuration is, set up as the document says; no pod may be there."""
        self.become(rows.gpu, rows.count, rows.config)
        rows.set_up(self)

    def become(self, model: str, count: int, config: str = "", **more: Any) -> None:
        """Give the node other GPUs, and Lamina another configuration; no pod may be there."""
        agent = self._processes.agents[self.node]
        agent.stop()
        self.kubectl("label", "node", self.node, *(f"{name}-" for name in LABELS))
        # The agent would miss the GPUs that were there.
        self.kubectl("delete", "inventory", "--ignore-not-found", self.node)
        self.kubectl("patch", "clusterpolicy", operator_objects.POLICY, "--type=merge", "-p", json.dumps(FRESH))
        whole = {**MACHINE, "seed": model, "gpus": [{"model": model, "count": count}], **more}
        machine = simgpu.parse(json.dumps(whole))
        self._node.gpus.become(machine)
        self.configure(config)
        agent.start()
        uuids = {gpu.uuid for gpu in simgpu.read(self.machine).gpus}
        wait_until(lambda: self._observed() == uuids, lambda: f"the agent sees {self._observed()}, not {uuids}")
        self._processes.wait()

    def _observed(self) -> set[str]:
        """The GPUs of the node's inventory."""
        found = json.loads(self.kubectl("get", "inventory", self.node, "-o", "json", "--ignore-not-found") or "{}")
        return {each["uuid"] for each in found.get("spec", {}).get("gpus", [])}

    def close(self, machine: simgpu.Machine) -> None:
        """Leave the cluster as it was, with the GPUs it had."""
        self._processes.remove()
        self.kubectl("delete", "inventory", "--ignore-not-found", self.node)
        self._node.gpus.become(machine)
        self.kubectl("label", "node", self.node, *(f"{name}-" for name in LABELS))
        names = self.kubectl("get", "namespaces", "-o", "jsonpath={.items[*].metadata.name}").split()
        self.kubectl("delete", "crd", f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}", "--wait=false")
        self.kubectl("delete", "namespace", *(name for name in names if name not in MANAGED))
