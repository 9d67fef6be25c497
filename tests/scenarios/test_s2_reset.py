"""S2.10: the reset of "Sharing your GPU in the cloud", in one command."""

import json
from pathlib import Path

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Cluster, wait_for

POD = """
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}
"""


def carried(lab: Cluster) -> list[str]:
    """What of ours the node still carries."""
    node = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))
    meta, status = node["metadata"], node["status"]
    keys = [*meta["labels"], *meta.get("annotations", {})]
    amounts = [name for name, amount in status["allocatable"].items() if amount != "0"]
    return [each for each in [*keys, *amounts] if each.startswith(("nvidia.com/", "volcano.sh/", "hami.io/"))]


def webhooks(lab: Cluster) -> str:
    return lab.kubectl("get", "mutatingwebhookconfigurations", "-o", "name")


def test_s2_10_reset(start_lab: StartLab) -> None:
    lab = start_lab("reset")
    reset_and_return(lab, lab.root / lab.name / "n" / "0" / "cdi")


def reset_and_return(lab: Cluster, specs: Path) -> None:
    """`specs` is the folder of CDI specs."""
    lab.apply(POD)
    wait_for(lambda: lab.phases() == {"Running": 1}, lambda: lab.kubectl("describe", "pods"))
    wait_for(lambda: "nvidia.com/gpu.product" in carried(lab), lambda: str(carried(lab)))
    refused = lab.lamina("reset")
    assert refused.returncode != 0
    assert "default/user" in refused.stderr
    lab.delete_workloads()
    done = lab.lamina("reset")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: carried(lab) == [], lambda: str(carried(lab)))
    wait_for(lambda: webhooks(lab) == "", lambda: webhooks(lab))
    wait_for(lambda: not list(specs.iterdir()), lambda: str(list(specs.iterdir())))
    text = json.dumps([{"op": "replace", "path": "/data/lamina.yaml", "value": "enabled: true"}])
    lab.kubectl("patch", "configmap", "lamina", "-n", "lamina-system", "--type=json", "-p", text)
    wait_for(lambda: webhooks(lab) != "", lambda: "admission does not come back")
    wait_for(lambda: "nvidia.com/gpu.product" in carried(lab), lambda: str(carried(lab)))
    lab.apply(POD)
    wait_for(lambda: lab.phases() == {"Running": 1}, lambda: lab.kubectl("describe", "pods"))
