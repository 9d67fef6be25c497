"""Asking a stage about pods, with patience."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from lamina import simgpu
from lamina.model.gpus import API_VERSION
from lamina.model.grants import ContainerGrant, Grant, Share, grant_name
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.node import Node
from tests.cluster.stage.own_images import WORKLOAD
from tests.cluster.stage.stage import Stage

Object = dict[str, Any]
PATIENCE_S = 90.0
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
SEEN = "0MiB /  3000MiB"
"""What nvidia-smi prints where a container has `SHARE` and does nothing with it."""


def until(happened: Callable[[], bool], otherwise: Callable[[], str], patience_s: float = PATIENCE_S) -> None:
    """Ask again until it happened; fail with what `otherwise` tells when it takes too long."""
    deadline = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.2)


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


def apply(stage: Stage, name: str, node: str, *command: str, **spec: Any) -> None:
    """A pod with `SHARE` on the node."""
    stage.kubectl("apply", "-f", "-", stdin=pod(name, *command, limits=SHARE, node=node, **spec))


def got(stage: Stage, name: str) -> Object:
    found: Object = json.loads(stage.kubectl("get", "pod", name, "-o", "json"))
    return found


def phase(stage: Stage, name: str) -> str:
    return str(got(stage, name)["status"].get("phase", ""))


def running(stage: Stage, *names: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until all these pods run."""
    until(
        lambda: all(phase(stage, name) == "Running" for name in names),
        lambda: stage.kubectl("describe", "pod", *names),
        patience_s,
    )


def ended(stage: Stage, name: str) -> str:
    """Wait until the pod has ended; its phase."""
    until(lambda: phase(stage, name) in ("Succeeded", "Failed"), lambda: stage.kubectl("describe", "pod", name))
    return phase(stage, name)


def deployment(name: str, pod_manifest: str, replicas: int = 1) -> str:
    """A manifest of a Deployment of such pods, which have the label `app` with its name."""
    template = {"metadata": {"labels": {"app": name}}, "spec": json.loads(pod_manifest)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def deployed(stage: Stage, name: str, pod_manifest: str) -> str:
    """Have a Deployment keep one such pod, and wait until it runs; the pod's name.

    Kubelet fails a pod that comes to it before a device plugin has registered again; a controller then makes another.
    """
    stage.kubectl("apply", "-f", "-", stdin=deployment(name, pod_manifest))
    found: list[str] = []

    def one_runs() -> bool:
        pods = json.loads(stage.kubectl("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
        found[:] = [each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running"]
        return bool(found)

    until(one_runs, lambda: stage.kubectl("describe", "pods", "-l", f"app={name}"))
    return found[0]


def container(stage: Stage, name: str, which: str = "main") -> Object:
    """The status of a pod's container; empty before kubelet has told it."""
    status = got(stage, name)["status"]
    all_of = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    return next((each for each in all_of if each["name"] == which), {})


def allocatable(stage: Stage, node: str) -> int:
    """How many GPUs, or tickets for them, the node has to give."""
    return int(stage.kubectl("get", "node", node, "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}") or 0)


def grant(stage: Stage, name: str, node: str, gpu: str, memory_mib: int) -> None:
    """Grant the pod's container a share, as the control part alone may."""
    uid = got(stage, name)["metadata"]["uid"]
    main = ContainerGrant(name="main", shares=(Share(gpu=gpu, memory_mib=memory_mib),))
    granted = Grant(pod=name, pod_uid=uid, node=node, dialect="hami", containers=(main,))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    meta = {"name": grant_name(name, uid), "ownerReferences": [owner]}
    whole = {"apiVersion": API_VERSION, "kind": "Grant", "metadata": meta, "spec": msgspec.to_builtins(granted)}
    stage.kubectl("create", "-f", "-", stdin=json.dumps(whole))


def why_pending(stage: Stage, name: str) -> str:
    """What the scheduler says of a pod that it could not place."""
    conditions = got(stage, name)["status"].get("conditions", [])
    return " ".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def sh(stage: Stage, name: str, command: str) -> str:
    """What a shell in the pod prints."""
    return stage.kubectl("exec", name, "--", "sh", "-c", command)


def cdi_specs(node: Node) -> set[str]:
    """The names of files in the node's folder for CDI; none where there is no folder."""
    return {*node.room.run("sh", "-c", "ls /var/run/cdi || true").split()}


@contextmanager
def other_gpus(stage: Stage, machine: str) -> Iterator[None]:
    """Give all nodes the GPUs of this description, in which `{name}` is the node's. Lamina is away before and after."""
    before = [(node, node.gpus.description) for node in stage.nodes]
    _become(stage, [(node, simgpu.parse(machine.format(name=node.name))) for node in stage.nodes])
    yield
    _become(stage, before)


def _become(stage: Stage, gpus: list[tuple[Node, simgpu.Machine]]) -> None:
    """Agents would miss the GPUs of inventories that are there."""
    with suppress(Unavailable):  # there may be no such kind yet
        stage.kubectl("delete", "inventories", "--all")
    for node, machine in gpus:
        node.gpus.become(machine)


def delete_pods(stage: Stage) -> None:
    """Leave no workload and no pod in the default namespace."""
    stage.kubectl("delete", "deployments,jobs,daemonsets,statefulsets,replicasets", "--all", "--wait=false")
    stage.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
    until(lambda: not json.loads(stage.kubectl("get", "pods", "-o", "json"))["items"], lambda: "pods stay")
