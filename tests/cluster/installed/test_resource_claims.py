"""ResourceClaims of an installation with `dra.enabled`: the rights of the agents, and what they may not write."""

import json
from collections.abc import Iterator

import pytest

from lamina.install.names import AGENT
from lamina.install.rights import CLAIMS_CLUSTER
from tests.cluster.claims import delete_claims, missing, offered
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed.queries import NAMESPACE, parts, reported, rolled_out, whole
from tests.cluster.kubernetes import Kubernetes
from tests.cluster.queries import delete_pods
from tests.scenarios import claim_shares
from tests.scenarios.resource_claims import API, CLASS, MIG_CLASS

GROUP, FORBIDDEN = ".resource.k8s.io", 403
RARE = {"update resourceslices.resource.k8s.io", "delete resourceslices.resource.k8s.io"}
"""Slices change when the GPUs on offer do, and are deleted when there are fewer."""
WRITE = (
    "import asyncio, json, sys\n"
    "from lamina.ports.kube import RESOURCE_SLICES\n"
    "from lamina.ports.kube.client import connect\n"
    "async def main():\n"
    "    kube = await connect(None)\n"
    "    await kube.create(RESOURCE_SLICES, json.loads(sys.argv[1]))\n"
    "    await kube.close()\n"
    "asyncio.run(main())\n"
)


@pytest.fixture(scope="module")
def serving(cluster: RealCluster, both: Installation) -> Iterator[Installation]:
    """Agents on both nodes that serve claims."""
    if reason := missing(cluster):
        pytest.skip(reason)
    install = both.command("lamina install --set image")
    both.shell(install.replace("--set image", "--set dra.enabled=true --set image", 1))
    _settled(cluster)
    offered(cluster)
    yield both
    delete_pods(cluster)
    delete_claims(cluster)
    both.shell(install)
    _settled(cluster)


def _settled(cluster: RealCluster) -> None:
    rolled_out(cluster, f"daemonset/{AGENT}")
    whole(cluster)


def _agent(cluster: RealCluster, node: str) -> str:
    (found,) = (each for each in parts(cluster, "agent") if each["spec"]["nodeName"] == node)
    return str(found["metadata"]["name"])


def test_a_claim_of_4_gib_gets_out_of_memory_at_4_gib(cluster: RealCluster, serving: Installation) -> None:
    claim_shares.test_a_claim_of_4_gib_gets_out_of_memory_at_4_gib(Kubernetes(cluster))
    assert "four" in serving.documented("lamina pods")
    delete_pods(cluster)
    delete_claims(cluster)


@pytest.mark.parametrize(("node", "refused"), [("node1", False), ("node2", True)])
def test_an_agent_writes_slices_of_its_own_node_alone(
    cluster: RealCluster, serving: Installation, node: str, refused: bool
) -> None:
    pool = {"name": "tried", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "tried.example.com", "nodeName": node, "pool": pool, "devices": []}
    slice_ = {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "tried"}, "spec": spec}
    words = ("exec", "-n", NAMESPACE, _agent(cluster, "node1"), "--", "python3", "-c", WRITE, json.dumps(slice_))
    try:
        cluster.kubectl(*words)
        said = ""
    except Unavailable as error:
        said = str(error)
    cluster.kubectl("delete", "resourceslice", "tried", "--ignore-not-found")
    assert ("an agent may only write resource slices of its own node" in said) == refused, said


def test_the_doctor_finds_what_is_offered(cluster: RealCluster, serving: Installation) -> None:
    assert "4 devices are offered to claims" in reported(serving, "claims")


def test_the_agents_have_the_rights_that_they_use_and_no_others(cluster: RealCluster, serving: Installation) -> None:
    """Those for claims; test_used_rights has the rest."""
    given = {f"{verb} {rule.resource}" for rule in CLAIMS_CLUSTER for verb in rule.verbs.split()}
    mine = [each for each in cluster.control.audit.asked() if each.account == AGENT and GROUP in each.resource]
    asked = {f"{each.verb} {each.resource}" for each in mine}
    assert [each for each in mine if each.code == FORBIDDEN] == []
    assert {each for each in given if GROUP in each} - RARE <= asked <= given


def test_classes_are_there(cluster: RealCluster, serving: Installation) -> None:
    found = cluster.kubectl("get", "deviceclasses", "-o", "name").split()
    assert {f"deviceclass.resource.k8s.io/{name}" for name in (CLASS, MIG_CLASS)} <= {*found}
