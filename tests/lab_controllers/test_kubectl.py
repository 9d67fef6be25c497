"""What people type: a real kubectl against the API server, controllers, scheduler and a pretended kubelet."""

import asyncio
import json
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.ports.clock import SystemClock
from lamina_lab.api.in_process import InProcess
from lamina_lab.controllers.run import run as run_controllers
from lamina_lab.scheduler.run import run as run_scheduler
from tests.kubectl import Kubectl
from tests.lab_api.servers import Threaded
from tests.lab_controllers.cluster import Kubelet, deployment, template
from tests.waiting import canceled

NODE: dict[str, Any] = {
    "metadata": {"name": "n1"},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    },
}


@pytest.fixture
def kubectl() -> Iterator[Kubectl]:
    lab = Threaded()
    lab.create("nodes", NODE)
    kubelet = Kubelet(lab.server.api)
    kubelet.bind_to = None
    loops: list[Coroutine[Any, Any, None]] = [
        run_controllers(InProcess(lab.server.api, "system:controllers"), SystemClock(), node_grace=1e9),
        run_scheduler(InProcess(lab.server.api, "system:scheduler"), None, SystemClock()),
        kubelet.run(),
    ]
    stop = asyncio.Event()
    running = lab.start(together(loops, stop))
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        lab.server.write_kubeconfig(kubeconfig)
        yield Kubectl(kubeconfig, Path(folder))
    lab.soon(stop.set)
    running.result(10)
    lab.close()


async def together(loops: list[Coroutine[Any, Any, None]], stop: asyncio.Event) -> None:
    """Run the loops until `stop`, and see them end."""
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    await stop.wait()
    await canceled(*tasks)


def manifest(kind: str, api_version: str, obj: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, **obj})


def test_the_life_of_a_deployment(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifest("Deployment", "apps/v1", deployment(replicas=3)))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=120s")
    assert "3/3" in kubectl("get", "deployment", "web")

    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    assert kubectl("get", "pods", "--no-headers").count("Running") == 5

    before = set(kubectl("get", "pods", "-o", "name").split())
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    kubectl("wait", "--for=delete", *sorted(before), "--timeout=120s")
    after = set(kubectl("get", "pods", "-o", "name").split())
    assert len(after) == 5
    assert not after & before

    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    described = kubectl("describe", "deployment", "web")
    assert "5 desired | 5 updated | 5 total | 5 available" in described
    assert "Scaled up replica set" in described
    assert "NewReplicaSetAvailable" in described

    kubectl("delete", "deployment", "web", "--timeout=120s")
    kubectl("wait", "--for=delete", "pods", "-l", "app=web", "--timeout=120s")


def test_why_a_pod_waits(kubectl: Kubectl) -> None:
    body = deployment("big", replicas=1)
    body["spec"]["template"] = template({"app": "big"}, resources={"limits": {"cpu": "64"}})
    kubectl("apply", "-f", "-", stdin=manifest("Deployment", "apps/v1", body))
    kubectl(
        "wait", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "pod", "-l", "app=big", "--timeout=120s"
    )
    described = kubectl("describe", "pod", "-l", "app=big")
    assert "FailedScheduling" in described
    assert "0/1 nodes are available: 1 Insufficient cpu." in described


def test_daemon_sets_roll_out_and_jobs_can_be_waited_for(kubectl: Kubectl) -> None:
    labels = {"app": "agent"}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels)}
    agent = manifest("DaemonSet", "apps/v1", {"metadata": {"name": "agent"}, "spec": spec})
    kubectl("apply", "-f", "-", stdin=agent)
    kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
    kubectl("rollout", "restart", "daemonset/agent")
    assert "successfully rolled out" in kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
    kubectl("create", "job", "work", "--image=busybox", "--", "true")
    kubectl("wait", "--for=jsonpath={.status.active}=1", "job/work", "--timeout=120s")
    assert "Created pod: work-" in kubectl("describe", "job", "work")


def test_the_life_of_a_stateful_set(kubectl: Kubectl) -> None:
    labels = {"app": "db"}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template(labels)}
    kubectl("apply", "-f", "-", stdin=manifest("StatefulSet", "apps/v1", {"metadata": {"name": "db"}, "spec": spec}))
    kubectl("rollout", "status", "statefulset/db", "--timeout=120s")
    kubectl("scale", "sts/db", "--replicas=3")
    kubectl("rollout", "status", "sts/db", "--timeout=120s")
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/db-0", "pod/db-1", "pod/db-2"]
    assert "3/3" in kubectl("get", "sts", "db")
    kubectl("set", "image", "sts/db", "main=busybox:2")
    kubectl("rollout", "status", "sts/db", "--timeout=120s")
    kubectl("rollout", "undo", "sts/db")
    kubectl("rollout", "status", "sts/db", "--timeout=120s")
    assert set(kubectl("get", "pods", "-o", "jsonpath={..image}").split()) == {"busybox:1"}
    assert "statefulset.apps/db" in kubectl("get", "controllerrevisions")
    assert "create Pod db-0 in StatefulSet db successful" in kubectl("describe", "sts", "db")


def test_a_cron_job_and_a_job_from_it(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *", "--", "true")
    [head, row] = kubectl("get", "cronjobs").splitlines()
    assert head.split()[:4] == ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND"]
    assert row.startswith("nightly   0 3 * * *   <none>")
    kubectl("create", "job", "now", "--from=cronjob/nightly")
    kubectl("wait", "--for=jsonpath={.status.active}=1", "job/now", "--timeout=120s")
    assert "batch.kubernetes.io" in kubectl("get", "job", "now", "-o", "yaml")
    kubectl("patch", "cronjob", "nightly", "-p", '{"spec":{"suspend":true}}')
    assert " True " in kubectl("get", "cronjobs")


def test_draining_a_node(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifest("Deployment", "apps/v1", deployment(replicas=2)))
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    kubectl("drain", "n1", "--timeout=120s")
    assert "SchedulingDisabled" in kubectl("get", "nodes")
    kubectl("wait", "--for=jsonpath={.status.unavailableReplicas}=2", "deployment/web", "--timeout=120s")
    assert kubectl("get", "pods", "--no-headers").count("Pending") == 2
    kubectl("uncordon", "n1")
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
