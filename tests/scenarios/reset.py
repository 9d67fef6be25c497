"""The reset of a cluster, and its return to service."""

import json
from pathlib import Path

from lamina.core.component_names import DEFAULT_NAMESPACE
from tests.scenarios.labs import Cluster
from tests.waiting import wait_until

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


def reset_and_return(lab: Cluster, specs: Path, *, namespace: str = DEFAULT_NAMESPACE) -> None:
    """`specs` is the folder of CDI specs, `namespace` Lamina's."""
    lab.apply(POD)
    wait_until(lambda: lab.phases() == {"Running": 1}, lambda: lab.kubectl("describe", "pods"))
    wait_until(lambda: "nvidia.com/gpu.product" in carried(lab), lambda: str(carried(lab)))
    refused = lab.lamina("reset", "--yes")
    assert refused.returncode != 0
    assert "default/user" in refused.stderr
    lab.delete_workloads()
    done = lab.lamina("reset", "--yes")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: carried(lab) == [], lambda: str(carried(lab)))
    wait_until(lambda: webhooks(lab) == "", lambda: webhooks(lab))
    wait_until(lambda: not list(specs.iterdir()), lambda: str(list(specs.iterdir())))
    text = json.dumps([{"op": "replace", "path": "/data/lamina.yaml", "value": "enabled: true"}])
    lab.kubectl("patch", "configmap", "lamina", "-n", namespace, "--type=json", "-p", text)
    wait_until(lambda: webhooks(lab) != "", lambda: "admission does not come back")
    wait_until(lambda: "nvidia.com/gpu.product" in carried(lab), lambda: str(carried(lab)))
    lab.apply(POD)
    wait_until(lambda: lab.phases() == {"Running": 1}, lambda: lab.kubectl("describe", "pods"))
