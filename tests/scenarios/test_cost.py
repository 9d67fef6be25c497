"""`lamina cost` in a lab: what a pod requests costs, whether or not it is used."""

import json
from typing import Any

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

CONFIG = """
apiVersion: lamina.dev/v1alpha1
kind: Configuration
pricing: {currency: EUR, gpus: [{model: V100, perHour: 7200}], labels: [team]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: runs, labels: {team: red}}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 7680, nvidia.com/gpucores: 50}}
"""


def cost(lab: Lab, *options: str) -> dict[str, Any]:
    ended = lab.lamina("cost", "-o", "json", *options)
    assert ended.returncode == 0, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_what_a_pod_requests_costs(start_lab: StartLab) -> None:
    lab = start_lab("priced", config=CONFIG)
    lab.apply(POD)
    lab.settled("", {"Running": 1})
    wait_until(lambda: any(row["memoryRequested"] for row in cost(lab)["rows"]), lambda: str(cost(lab)))
    [row] = cost(lab, "--by", "workload")["rows"]
    assert (row["namespace"], row["kind"], row["workload"]) == ("default", "Pod", "runs")
    assert row["memoryRequested"] > 0 and row["computeRequested"] > 0 and row["computeUsed"] == 0
    expected = 3600 * (row["memoryRequested"] + row["computeRequested"])
    assert abs(row["cost"] - expected) < 1e-6 * expected
    document = cost(lab, "--by", "label", "--label", "team")
    assert [row["label"] for row in document["rows"]] == ["red"]
    assert document["idle"]["cost"] > 0 and document["silentNodes"] == []
