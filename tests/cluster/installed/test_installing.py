"""The guides of docs/how-to about the installation, executed: the objects, who may do what, a shared GPU."""

import json
import re

import pytest

from lamina.install.names import AGENT, CONTROLLER
from lamina.install.rights import Rule
from lamina.install.rights_of_commands import DOCTOR, READER
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed.queries import NAMESPACE, NONSENSE, SEEN, SHARE, leader, listed, parts
from tests.cluster.queries import pod, running, sh
from tests.waiting import wait_until

RBAC = "rbac.authorization.k8s.io"


def test_the_documents_example_shares_gpus(cluster: RealCluster, both: Installation) -> None:
    both.documented("kubectl apply -f examples")
    wait_until(lambda: both.documented("lamina pods").count(" Running ") == 10, lambda: both.documented("lamina pods"))
    # What is used stands between them once the agents have said it.
    assert len(re.findall(r" 10000 MiB (?: +\d+ MiB){0,2} +10 %, lends ", both.documented("lamina pods"))) == 10


def test_a_pod_sees_its_share(cluster: RealCluster, both: Installation) -> None:
    with cluster.steps("one pod with a share, from apply to Running"):
        cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
        running(cluster, "share")
    assert SEEN in sh(cluster, "share", "nvidia-smi")


def test_nonsense_is_refused_with_the_reason(cluster: RealCluster, lamina: Installation) -> None:
    with pytest.raises(Unavailable, match="gpucores"):
        cluster.kubectl("apply", "-f", "-", stdin=pod("nonsense", limits=NONSENSE))


def test_applying_again_changes_nothing(cluster: RealCluster, lamina: Installation) -> None:
    reported = lamina.documented("lamina install --set image").splitlines()
    assert [line for line in reported if not line.endswith(" unchanged") and "poddisruptionbudget" not in line] == []


def test_no_container_that_runs_on_is_privileged(cluster: RealCluster, lamina: Installation) -> None:
    """The one init container that is mounts a file system on the node and ends."""
    for each in parts(cluster):
        spec = each["spec"]
        listing_processes = spec["containers"][0]["name"] == "agent"
        assert bool(spec.get("hostPID")) is listing_processes, "NVML lists those of other containers only there"
        assert not any(spec.get(what) for what in ("hostNetwork", "hostIPC"))
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            security = container["securityContext"]
            assert bool(security.get("privileged")) == (container["name"] == "mount-files")
            if security.get("privileged"):
                assert container in spec["initContainers"] and security["readOnlyRootFilesystem"]
                continue
            of_agent = {"add": ["CHOWN"]} if container["name"] == "agent" else {}
            assert security["capabilities"] == {"drop": ["ALL"], **of_agent}
            assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
            assert (security["runAsUser"] == 0) == (container["name"] == "agent")
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        critical = "system-node-critical" if spec["serviceAccountName"] == AGENT else "system-cluster-critical"
        assert spec["priorityClassName"] == critical


@pytest.mark.parametrize(
    ("part", "port", "series"),
    [("agent", 9394, "lamina_gpu_memory_bytes{"), ("controller", 9395, "lamina_")],
)
def test_metrics_of_each_pod_can_be_read(
    cluster: RealCluster, lamina: Installation, part: str, port: int, series: str
) -> None:
    for each in parts(cluster, part):
        name = each["metadata"]["name"]
        page = cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:{port}/proxy/metrics")
        assert series in page


ASKS = (
    "import ssl, urllib.request\n"
    "context = ssl.create_default_context()\n"
    "context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n"
    "print(urllib.request.urlopen('https://{address}:8445/healthz', context=context, timeout=5).status)\n"
)


def test_the_extender_answers_only_who_has_a_certificate(cluster: RealCluster, lamina: Installation) -> None:
    """The scheduler's works, as each pod with a share shows."""
    address = cluster.kubectl("get", "service", CONTROLLER, "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}")
    with pytest.raises(Unavailable, match=r"(?i)certificate.required|eof|closed|reset by peer"):
        cluster.control.sandbox.run("python3", "-c", ASKS.format(address=address))


def test_the_controllers_service_leads_to_the_leader_and_admissions_to_every_replica(
    cluster: RealCluster, lamina: Installation
) -> None:
    replicas = {each["status"]["podIP"] for each in parts(cluster, "controller")}
    for name, expected in ((CONTROLLER, {leader(cluster)["status"]["podIP"]}), ("lamina-admission", replicas)):
        (found,) = listed(cluster, "endpoints", "-n", NAMESPACE, "--field-selector", f"metadata.name={name}")
        assert {each["ip"] for subset in found["subsets"] for each in subset["addresses"]} == expected


def test_an_agent_writes_of_its_own_node_alone(cluster: RealCluster, both: Installation) -> None:
    """By roles alone it could write of any, before Kubernetes 1.32 as the document says."""
    agent = next(each for each in parts(cluster, "agent") if each["spec"]["nodeName"] == "node1")["metadata"]["name"]
    write = (
        "import asyncio\n"
        "from lamina.ports.kube import NODES\n"
        "from lamina.ports.kube.client import connect\n"
        "async def main():\n"
        "    kube = await connect(None)\n"
        "    await kube.patch(NODES, 'node2', {'metadata': {'labels': {'lamina.dev/tried': None}}})\n"
        "    await kube.close()\n"
        "asyncio.run(main())\n"
    )
    try:
        cluster.kubectl("exec", "-n", NAMESPACE, agent, "--", "python3", "-c", write)
        refused = ""
    except Unavailable as error:
        refused = str(error)
    assert ("an agent may only write objects of its own node" in refused) == (cluster.binaries.version >= (1, 32))


def test_the_doctor_needs_no_more_rights_than_its_document_says(cluster: RealCluster, both: Installation) -> None:
    rules = [Rule(each.resource, each.verbs).policy() for each in (*DOCTOR, *READER)]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "doctor"}, "rules": rules}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    cluster.kubectl("create", "clusterrolebinding", "doctor", "--clusterrole=doctor", "--user=doctor")
    try:
        config = cluster.control.authority.kubeconfig("doctor", "doctor")
        assert "it answers, and refuses an invalid pod" in both.shell(f"lamina doctor --all --kubeconfig {config}")
        assert "No pod" in both.shell(f"lamina pods --kubeconfig {config}")
    finally:
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", "doctor")
