"""What a hostile tenant sends to the API server: pods of every attack, and requests that must be refused.

The tenant has the role `edit` in a namespace of its own, and nothing else.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

from lamina.core.component_names import DEFAULT_NAMESPACE
from tests.cluster.components import network
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import ADMISSION_PORT
from tests.cluster.hostile.program import ATTACKS
from tests.cluster.queries import pod

Object = dict[str, Any]
NAMESPACE = "hostile"
LIMITS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 10}
GRACE_S = 8
WITHOUT_GPU = ("peek", "flood")
KUBELET, EXTENDER, API = 10250, 8080, 6443


def attack_pod(random: Random, number: int) -> Object:
    """A pod that runs one attack. Those without a request ask the runtime for all GPUs."""
    attack = random.choice(sorted(ATTACKS))
    words = ["hostile", attack]
    if attack == "flood":
        words += [f"{network.CONTROL}:{port}" for port in (ADMISSION_PORT, EXTENDER)]
    made: Object = json.loads(pod(f"attack-{number}", *words, limits={} if attack in WITHOUT_GPU else LIMITS))
    made["metadata"] |= {"namespace": NAMESPACE, "labels": {"attack": attack}, "annotations": _annotations(random)}
    made["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    made["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": GRACE_S}
    return made


def _annotations(random: Random) -> Object:
    """What tools of other systems write, and a wish for a priority that this namespace does not have."""
    forged = {
        "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,40960,100:;",
        "hami.io/bind-phase": "success",
        "volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,40960,100:;",
        "nvidia.com/priority": "0",
        "lamina.dev/grant": "{}",
    }
    return {key: value for key, value in forged.items() if random.random() < 0.5}


def refused_requests(cluster: RealCluster) -> list[tuple[str, tuple[str, ...], str]]:
    """What the tenant tries: a name, the words for kubectl and the document."""
    node = cluster.nodes[0].name
    grant = {"apiVersion": "lamina.dev/v1alpha1", "kind": "Grant", "metadata": {"name": "mine"}, "spec": {}}
    patch = ("-p", '{"metadata": {"labels": {"forged": "yes"}}}')
    return [
        ("a Grant", ("create", "-n", NAMESPACE, "--validate=false", "-f", "-"), json.dumps(grant)),
        ("an Inventory", ("patch", "inventories.lamina.dev", node, "--type=merge", *patch), ""),
        ("a node", ("patch", "node", node, *patch), ""),
        ("the configuration", ("delete", "configmap", "lamina", "-n", DEFAULT_NAMESPACE), ""),
        ("the Lease", ("delete", "lease", "lamina-controller", "-n", DEFAULT_NAMESPACE), ""),
        ("grants of others", ("get", "grants.lamina.dev", "-A"), ""),
        ("a namespace's label", ("label", "namespace", NAMESPACE, "lamina.dev/webhook=ignore"), ""),
    ]


class Tenant:
    """The tenant's own login to the cluster. Its namespace is removed by `leave`."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl("create", "rolebinding", "hostile", "--clusterrole=edit", "--user=mallory", "-n", NAMESPACE)
        self._login: Path = cluster.control.authority.kubeconfig("mallory", "mallory")

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """kubectl with the tenant's login. Raises Unavailable with what it said."""
        return self._cluster.kubectl(*words, "--kubeconfig", str(self._login), stdin=stdin)

    def accepted(self) -> list[str]:
        """Which of the requests that must be refused were not, one sentence each."""
        found = []
        for what, words, document in refused_requests(self._cluster):
            try:
                self.kubectl(*words, stdin=document)
            except Unavailable as error:
                if "orbidden" not in str(error):
                    found.append(f"the tenant's request for {what} ended otherwise: {error}")
            else:
                found.append(f"the tenant's request for {what} was accepted")
        return found

    def leave(self) -> None:
        """Remove everything of the tenant, and return when it is gone."""
        self._cluster.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--force", "--grace-period=0")
        self._cluster.kubectl("delete", "namespace", NAMESPACE, timeout=120)
