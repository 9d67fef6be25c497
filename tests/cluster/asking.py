"""Asking a stage about pods, with patience."""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.cluster.stage.own_images import WORKLOAD
from tests.cluster.stage.stage import Stage

Object = dict[str, Any]
PATIENCE_S = 90.0


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


def deployed(stage: Stage, name: str, pod_manifest: str) -> str:
    """Have a Deployment keep one such pod, and wait until it runs; the pod's name.

    Kubelet fails a pod that comes to it before a device plugin has registered again; a controller then makes another.
    """
    template = {"metadata": {"labels": {"app": name}}, "spec": json.loads(pod_manifest)["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    found: list[str] = []

    def one_runs() -> bool:
        pods = json.loads(stage.kubectl("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
        found[:] = [each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running"]
        return bool(found)

    until(one_runs, lambda: stage.kubectl("describe", "pods", "-l", f"app={name}"))
    return found[0]


def why_pending(stage: Stage, name: str) -> str:
    """What the scheduler says of a pod that it could not place."""
    conditions = got(stage, name)["status"].get("conditions", [])
    return " ".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def sh(stage: Stage, name: str, command: str) -> str:
    """What a shell in the pod prints."""
    return stage.kubectl("exec", name, "--", "sh", "-c", command)


def delete_pods(stage: Stage) -> None:
    """Leave no workload and no pod in the default namespace."""
    stage.kubectl("delete", "deployments,jobs,daemonsets,statefulsets,replicasets", "--all", "--wait=false")
    stage.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
    until(lambda: not json.loads(stage.kubectl("get", "pods", "-o", "json"))["items"], lambda: "pods stay")
