"""A pod that takes all tickets of a node without a grant is named where people look, and its node is used again."""

import yaml

from tests.scenarios.examples import running
from tests.scenarios.labs import Lab
from tests.waiting import wait_until


def pod(name: str, gpus: int, **spec: object) -> str:
    asks = {"limits": {"nvidia.com/gpu": gpus, **({} if spec else {"nvidia.com/gpumem": 1000})}}
    container = {"name": "main", "image": "any", "command": ["sleep", "infinity"], "resources": asks}
    metadata = {"name": name, "labels": {"lamina.dev/webhook": "ignore"} if spec else {}}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
    )


def test_tickets_without_a_grant(lab: Lab) -> None:
    tickets = int(lab.read(f"/api/v1/nodes/{lab.node}")["status"]["allocatable"]["nvidia.com/gpu"])
    lab.apply(pod("culprit", tickets, nodeName=lab.node, schedulerName="mine"))
    wait_until(lambda: "CreateContainerConfigError" in lab.kubectl("get", "pod", "culprit"), lab.described)
    lab.apply(pod("honest", 1))
    wait_until(lambda: "Insufficient nvidia.com/gpu" in lab.described(), lab.described)
    said = lab.lamina("why", "honest").stdout
    assert "would fit now" not in said
    assert f"pods without a grant have {tickets} of {tickets} nvidia.com/gpu" in said
    assert f"pod default/culprit has {tickets} nvidia.com/gpu of node {lab.node} without a grant" in said
    assert "Lamina did not place it" in lab.lamina("why", "culprit").stdout
    assert "default/culprit has" in lab.lamina("doctor", "--all").stdout
    lab.kubectl("delete", "pod", "culprit", "--grace-period=1")
    running(lab, "honest")
