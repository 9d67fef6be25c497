"""What `lamina fits` answers, and what then happens after `kubectl apply`, are the same."""

import json
from typing import Any

import pytest

from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

NODE = "node-0"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
QUOTA = {"limits.nvidia.com/gpumem": "5000"}
Object = dict[str, Any]


def deployment(replicas: int, requests: Object | None = None, **spec: Any) -> Object:
    """Pods that ask for 2000 MiB of a GPU each."""
    limits = {"nvidia.com/gpumem": "2000"}
    resources = {"limits": limits, "requests": requests or {}}
    container = {"name": "main", "image": "busybox", "command": ["sleep", "86400"], "resources": resources}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    template = {"metadata": {"labels": {"app": "asked"}}, "spec": pod}
    selector = {"matchLabels": {"app": "asked"}}
    body = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "asked"}, "spec": body}


CASES: dict[str, tuple[Object, Object, int, str]] = {
    "all fit": ({}, deployment(2), 2, "All 2 pods"),
    "selector that matches": ({}, deployment(1, nodeSelector={"kubernetes.io/hostname": NODE}), 1, "fits now"),
    "selector": ({}, deployment(1, nodeSelector={"pool": "a"}), 0, "does not have the label pool=a"),
    "taint": ({"taints": [TAINT]}, deployment(1), 0, "does not tolerate the taint team=a:NoSchedule"),
    "tolerated taint": ({"taints": [TAINT]}, deployment(1, tolerations=[{"operator": "Exists"}]), 1, "fits now"),
    "cordon": ({"unschedulable": True}, deployment(1), 0, "the node is unschedulable"),
    "CPU of one": ({}, deployment(1, {"cpu": "1000"}), 0, "needs 1000 CPU; this node offers"),
    "CPU of some": ({}, deployment(3, {"cpu": "HALF"}), 2, "2 of 3 pods"),
    "quota": ({}, deployment(3), 2, "quota asked allows 5000 of nvidia.com/gpumem"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_what_happens(lab: Lab, case: str) -> None:
    of_node, manifest, running, words = CASES[case]
    allocatable = lab.read(f"/api/v1/nodes/{NODE}")["status"]["allocatable"]
    half = f"{int(allocatable['cpu']) * 1000 // 2}m"
    text = json.dumps(manifest).replace('"HALF"', json.dumps(half))
    if of_node:
        lab.kubectl("patch", "node", NODE, "--type=merge", "-p", json.dumps({"spec": of_node}))
    if case == "quota":
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "asked"}, "spec": {"hard": QUOTA}}
        lab.apply(json.dumps(quota))
    try:
        file = lab.root / "asked.json"
        file.write_text(text)
        answer = lab.lamina("fits", "-f", str(file))
        file.unlink()
        replicas = manifest["spec"]["replicas"]
        assert answer.returncode == (0 if running == replicas else 1), answer.stdout + answer.stderr
        assert words in answer.stdout
        lab.apply(text)
        wait_until(lambda: len(lab.pods("app=asked")) == replicas, lambda: str(lab.phases()))
        phases = {"Pending": replicas - running, "Running": running}
        lab.settled("app=asked", {phase: number for phase, number in phases.items() if number})
        waiting = [pod["metadata"]["name"] for pod in lab.pods("app=asked") if "nodeName" not in pod["spec"]]
        for name in waiting:
            why = lab.lamina("why", name).stdout
            _, pending, reason = why.splitlines()[0].partition("is pending: ")
            assert pending and reason.split(".")[0] in answer.stdout
    finally:
        lab.kubectl("patch", "node", NODE, "--type=merge", "-p", '{"spec": {"taints": null, "unschedulable": null}}')
        lab.kubectl("delete", "resourcequota", "asked", "--ignore-not-found")


@pytest.mark.parametrize(("members", "running"), [(2, 2), (3, 0)])
def test_a_pod_group_fits_as_a_whole_or_not_at_all(lab: Lab, members: int, running: int) -> None:
    """The node has two GPUs, each with room for one member."""
    definition = (EXAMPLES / "gang" / "definition.yaml").read_text()
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "asked"}}
    gang = deployment(members)
    gang["spec"]["template"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "asked"
    text = json.dumps(gang).replace('"2000"', '"20000"')
    lab.apply(definition)
    try:
        lab.apply(json.dumps({**group, "spec": {"minMember": members}}))
        file = lab.root / "asked.json"
        file.write_text(text)
        answer = lab.lamina("fits", "-f", str(file))
        file.unlink()
        assert answer.returncode == (0 if running else 1), answer.stdout + answer.stderr
        lab.apply(text)
        wait_until(lambda: len(lab.pods("app=asked")) == members, lambda: str(lab.phases()))
        lab.settled("app=asked", {"Running": running} if running else {"Pending": members})
        if not running:
            words = f"{members} members must be placed at once, but only 2 can be placed now"
            assert words in answer.stdout
            wait_until(
                lambda: words in lab.kubectl("get", "events", "-o", "yaml"), lambda: lab.kubectl("get", "events")
            )
    finally:
        lab.kubectl("delete", "podgroup", "asked", "--ignore-not-found")
        lab.kubectl("delete", "-f", "-", stdin=definition)
