"""Queries to a cluster about pods, with patience. A wait that fails says what the cluster and the agents know of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.component_names import API_VERSION, DEFAULT_NAMESPACE
from lamina.core.grants import ContainerGrant, Grant, Share, grant_name
from lamina.core.objects import write_spec
from lamina.core.pod_status import runs_containers
from lamina.ports.kube import NODES, PODS
from lamina_lab import simgpu
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.node import RealNode
from tests.cluster.components.own_images import WORKLOAD
from tests.waiting import wait_until

Object = dict[str, Any]
PATIENCE_S = 90.0
LAST_LINES, MAX_LINE, MAX_DESCRIBED = 30, 400, 3
"""Of what a failed wait prints: lines of events and of each log, characters of a line, and pods."""
WORTH_READING = ("kubelet", "containerd")
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
TWO_A100 = """
driver: "550.54.15"
cuda: "12.4"
seed: {name}
gpus:
- model: A100-PCIE-40GB
  count: 2
"""
"""For `other_gpus`."""
SEEN = "0MiB /   3000MiB"
"""What nvidia-smi prints where a container has `SHARE` and does nothing with it."""


def pod(name: str, *command: str, limits: dict[str, Any] | None = None, node: str = "", **spec: Any) -> str:
    """A manifest of one pod with one container of the workload image, which sleeps unless a command is given."""
    container = {
        "name": "main",
        "image": WORKLOAD,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command) or ["sleep", "infinity"],
        "resources": {"limits": limits or {}},
    }
    whole = {"containers": [container], "terminationGracePeriodSeconds": 0} | spec
    if node:
        whole["nodeSelector"] = {"kubernetes.io/hostname": node}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole})


def apply(cluster: RealCluster, name: str, node: str, *command: str, **spec: Any) -> None:
    """A pod with `SHARE` on the node."""
    cluster.kubectl("apply", "-f", "-", stdin=pod(name, *command, limits=SHARE, node=node, **spec))


def got(cluster: RealCluster, name: str) -> Object:
    return cluster.read(PODS.path(namespace="default", name=name))


def phase(cluster: RealCluster, name: str) -> str:
    return str(got(cluster, name)["status"].get("phase", ""))


def situation(cluster: RealCluster, *names: str) -> str:
    """What may explain why pods do not become what they should: these or all of the namespace, those that do not run
    in full, the last events, and the last lines of each log of Lamina and of each node's kubelet."""
    said = [cluster.kubectl("get", "pods", "-o", "wide")]
    pods = cluster.read(PODS.path(namespace="default"))["items"]
    wanted = [each["metadata"]["name"] for each in pods if not names or each["metadata"]["name"] in names]
    late = [name for name in wanted if names or phase(cluster, name) != "Running"][:MAX_DESCRIBED]
    said += [cluster.kubectl("describe", "pod", *late)] if late else []
    said.append(_tail(cluster.kubectl("get", "events", "--sort-by=.lastTimestamp")))
    logs = sorted((cluster.folder / "lamina").glob("*.log"))
    logs += [node.folder / "logs" / f"{name}.log" for node in cluster.nodes for name in WORTH_READING]
    said += [f"--- {log}\n{_tail(log.read_text(errors='replace'))}" for log in logs if log.exists()]
    return "\n".join(said)


def _tail(text: str) -> str:
    return "\n".join(line[:MAX_LINE] for line in text.splitlines()[-LAST_LINES:])


def running(cluster: RealCluster, *names: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until all these pods run."""
    wait_until(
        lambda: all(phase(cluster, name) == "Running" for name in names),
        lambda: situation(cluster, *names),
        patience_s,
    )


def ended(cluster: RealCluster, name: str) -> str:
    """Wait until the pod has ended; its phase."""
    wait_until(lambda: phase(cluster, name) in ("Succeeded", "Failed"), lambda: situation(cluster, name))
    return phase(cluster, name)


def deployment(name: str, pod_manifest: str, replicas: int = 1) -> str:
    """A manifest of a Deployment of such pods, which have the label `app` with its name."""
    template = {"metadata": {"labels": {"app": name}}, "spec": json.loads(pod_manifest)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def deployed(cluster: RealCluster, name: str, pod_manifest: str) -> str:
    """Have a Deployment keep one such pod, and wait until it runs; the pod's name.

    Kubelet fails a pod that comes to it before a device plugin has registered again; a controller then makes another.
    """
    cluster.kubectl("apply", "-f", "-", stdin=deployment(name, pod_manifest))
    found: list[str] = []

    def one_runs() -> bool:
        pods = cluster.read(f"{PODS.path(namespace='default')}?labelSelector=app%3D{name}")["items"]
        found[:] = [each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running"]
        return bool(found)

    wait_until(one_runs, lambda: situation(cluster))
    return found[0]


def container(cluster: RealCluster, name: str, which: str = "main") -> Object:
    """The status of a pod's container; empty before kubelet has reported it."""
    status = got(cluster, name)["status"]
    all_of = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    return next((each for each in all_of if each["name"] == which), {})


def allocatable(cluster: RealCluster, node: str) -> int:
    """How many GPUs, or tickets for them, the node has to give."""
    return int(cluster.read(NODES.path(name=node))["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))


def grant(cluster: RealCluster, name: str, node: str, gpu: str, memory_mib: int) -> None:
    """Grant the pod's container a share, as the controller alone may."""
    uid = got(cluster, name)["metadata"]["uid"]
    main = ContainerGrant(name="main", shares=(Share(gpu=gpu, memory_mib=memory_mib),))
    granted = Grant(pod=name, pod_uid=uid, node=node, dialect="hami", containers=(main,))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    meta = {"name": grant_name(name, uid), "ownerReferences": [owner]}
    whole = {"apiVersion": API_VERSION, "kind": "Grant", "metadata": meta, "spec": write_spec(granted)}
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(whole))


def why_pending(cluster: RealCluster, name: str) -> str:
    """What the scheduler says of a pod that it could not place."""
    conditions = got(cluster, name)["status"].get("conditions", [])
    return " ".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def sh(cluster: RealCluster, name: str, command: str) -> str:
    """What a shell in the pod prints."""
    return cluster.kubectl("exec", name, "--", "sh", "-c", command)


def cdi_specs(node: RealNode) -> set[str]:
    """The names of files in the node's folder for CDI; none where there is no folder."""
    return {*node.sandbox.run("sh", "-c", "ls /var/run/cdi || true").split()}


@contextmanager
def configured(cluster: RealCluster, config: Object) -> Iterator[None]:
    """Lamina's ConfigMap with this configuration. Lamina is away before and after."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEFAULT_NAMESPACE}}
    meta = {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
    data = {CONFIG_MAP_KEY: json.dumps(config)}
    for each in (namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    yield
    cluster.kubectl("delete", "configmap", CONFIG_MAP, "-n", DEFAULT_NAMESPACE)


@contextmanager
def other_gpus(cluster: RealCluster, machine: str) -> Iterator[None]:
    """Give all nodes the GPUs of this description, in which `{name}` is the node's. Lamina is away before and after."""
    before = [(node, node.gpus.description) for node in cluster.nodes]
    _become(cluster, [(node, simgpu.parse(machine.format(name=node.name))) for node in cluster.nodes])
    yield
    _become(cluster, before)


def _become(cluster: RealCluster, gpus: list[tuple[RealNode, simgpu.Machine]]) -> None:
    """Agents would miss the GPUs of inventories that are there."""
    with suppress(Unavailable):  # there may be no such kind yet
        cluster.kubectl("delete", "inventories", "--all")
    for node, machine in gpus:
        node.gpus.become(machine)


def delete_pods(cluster: RealCluster) -> None:
    """Leave no workload and no pod in the default namespace.

    By force once kubelet has reported that containers have ended: it takes up to ten seconds more to remove a pod. If
    they had not, the controller would count their GPUs until it is sure that nothing runs.
    """

    def pods() -> list[Object]:
        found: list[Object] = cluster.read(PODS.path(namespace="default"))["items"]
        return found

    cluster.kubectl("delete", "deployments,jobs,daemonsets,statefulsets,replicasets", "--all", "--wait=false")
    cluster.kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    wait_until(lambda: not any(map(runs_containers, pods())), lambda: f"containers stay: {situation(cluster)}")
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
    wait_until(lambda: not pods(), lambda: f"pods stay: {situation(cluster)}")
