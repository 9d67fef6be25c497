"""Bad input, as a user of kubectl meets it: one sentence, and nothing half-made."""

import json

import pytest

from tests.scenarios.labs import Lab
from tests.waiting import wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: asked, namespace: {namespace}}}
spec:
  {node}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ubuntu:22.04
    command: [sleep, "86400"]
    resources: {{limits: {{{limits}}}}}
"""


def pod(limits: str, *, namespace: str = "default", node: str = "") -> str:
    return POD.format(limits=limits, namespace=namespace, node=f"nodeName: {node}" if node else "")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("nvidia.com/gpumem: 10Gi", "nvidia.com/gpumem"),
        ('nvidia.com/gpu: "1.5"', "nvidia.com/gpu"),
        ("nvidia.com/gpu: 1, volcano.sh/vgpu-memory: 1000", "volcano.sh/vgpu-memory"),
    ],
)
def test_nonsense_is_refused_in_one_sentence_that_names_it(lab: Lab, limits: str, words: str) -> None:
    """By admission or by the API server; what else is refused is in tests/dialects."""
    output = lab.kubectl("apply", "-f", "-", stdin=pod(limits), check=False)
    assert words in output
    assert "denied the request" in output or "is invalid" in output
    assert len(output.strip().splitlines()) == 1
    assert lab.pods() == []
    assert lab.kubectl("get", "grants", "-o", "name") == ""


def test_a_deployment_of_nonsense_says_so_in_its_conditions(lab: Lab) -> None:
    lab.kubectl("create", "deployment", "bad", "--image=x", "--replicas=2", "--", "sleep", "100")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "x", "resources": {"limits": BAD}}]}}}}
    lab.kubectl("patch", "deployment", "bad", "--type=strategic", "-p", json.dumps(patch))

    def refused() -> bool:
        return "nvidia.com/gpumem-percentage" in lab.kubectl("get", "events", "-o", "yaml")

    wait_until(refused, lambda: lab.kubectl("get", "events"))


BAD = {"nvidia.com/gpumem-percentage": "500"}


def test_a_container_without_a_grant_does_not_start_and_says_why(lab: Lab) -> None:
    lab.kubectl("create", "namespace", "unwatched")
    lab.kubectl("label", "namespace", "unwatched", "lamina.dev/webhook=ignore")
    manifest = pod("nvidia.com/gpu: 1", namespace="unwatched", node="node-0")
    lab.kubectl("apply", "-f", "-", stdin=manifest)

    def waiting() -> dict[str, str]:
        found = json.loads(lab.kubectl("get", "pod", "asked", "-n", "unwatched", "-o", "json"))
        statuses = found["status"].get("containerStatuses", [{}])
        reason: dict[str, str] = statuses[0].get("state", {}).get("waiting", {})
        return reason

    wait_until(lambda: "grant" in waiting().get("message", ""), lambda: str(waiting()))
    assert "grant" in lab.lamina("why", "asked", "-n", "unwatched").stdout
    lab.kubectl("delete", "namespace", "unwatched")


def test_a_pod_that_admission_did_not_see_gets_no_share_and_says_why(lab: Lab) -> None:
    lab.kubectl("create", "namespace", "unseen")
    lab.kubectl("label", "namespace", "unseen", "lamina.dev/webhook=ignore")
    named = "spec:\n  schedulerName: lamina-scheduler"
    unseen = pod("nvidia.com/gpumem: 100", namespace="unseen").replace("spec:", named, 1)
    lab.kubectl("apply", "-f", "-", stdin=unseen)

    def reported() -> bool:
        return "admission has not seen this pod" in lab.kubectl("describe", "pod", "asked", "-n", "unseen")

    wait_until(reported, lambda: lab.kubectl("describe", "pod", "asked", "-n", "unseen"))
    assert lab.kubectl("get", "grants", "-A", "-o", "name") == ""
    lab.kubectl("delete", "namespace", "unseen")


def test_a_pod_of_no_gpu_is_none_of_our_business(lab: Lab) -> None:
    lab.apply(pod("cpu: 100m"))
    lab.settled("", {"Running": 1})
    assert lab.kubectl("get", "grants", "-o", "name") == ""
    assert "No devices were found" in lab.kubectl("exec", "asked", "--", "nvidia-smi", check=False)
