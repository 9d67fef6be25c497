"""docs/install.md, executed: the objects, who may do what, a shared GPU."""

import json

import pytest

from lamina.install.names import AGENT
from lamina.install.rights import Rule
from tests.cluster.asking import pod, running, sh, until
from tests.cluster.installed.asking import NAMESPACE, NONSENSE, SEEN, SHARE, leader, listed, parts
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import PROJECT, Installation
from tests.cluster.stage.stage import Stage

RBAC = "rbac.authorization.k8s.io"


def test_the_documents_example_shares_gpus(stage: Stage, both: Installation) -> None:
    both.documented("kubectl apply -f examples")
    until(lambda: both.documented("lamina pods").count(" Running ") == 10, lambda: both.documented("lamina pods"))
    assert both.documented("lamina pods").count("10000 MiB  10 %") == 10


def test_a_pod_sees_its_share(stage: Stage, both: Installation) -> None:
    with stage.steps("one pod with a share, from apply to Running"):
        stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
        running(stage, "share")
    assert SEEN in sh(stage, "share", "nvidia-smi")


def test_nonsense_is_refused_with_the_reason(stage: Stage, lamina: Installation) -> None:
    with pytest.raises(Unavailable, match="gpucores"):
        stage.kubectl("apply", "-f", "-", stdin=pod("nonsense", limits=NONSENSE))


def test_applying_again_changes_nothing(stage: Stage, lamina: Installation) -> None:
    told = lamina.documented("lamina install --set image").splitlines()
    assert [line for line in told if not line.endswith(" unchanged") and "poddisruptionbudget" not in line] == []


def test_nobody_is_privileged(stage: Stage, lamina: Installation) -> None:
    for each in parts(stage):
        spec = each["spec"]
        assert not any(spec.get(what) for what in ("hostNetwork", "hostPID", "hostIPC"))
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            security = container["securityContext"]
            assert not security.get("privileged")
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
            assert (security["runAsUser"] == 0) == (container["name"] == "agent")
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        critical = "system-node-critical" if spec["serviceAccountName"] == AGENT else "system-cluster-critical"
        assert spec["priorityClassName"] == critical


@pytest.mark.parametrize(
    ("part", "port", "series"),
    [("agent", 9394, "lamina_gpu_memory_bytes{"), ("control", 9395, "lamina_")],
)
def test_metrics_of_each_pod_can_be_read(stage: Stage, lamina: Installation, part: str, port: int, series: str) -> None:
    for each in parts(stage, part):
        name = each["metadata"]["name"]
        page = stage.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:{port}/proxy/metrics")
        assert series in page


def test_services_lead_to_the_leader_alone(stage: Stage, lamina: Installation) -> None:
    address = leader(stage)["status"]["podIP"]
    for name in ("lamina-control", "lamina-admission"):
        (found,) = listed(stage, "endpoints", "-n", NAMESPACE, "--field-selector", f"metadata.name={name}")
        assert [each["ip"] for subset in found["subsets"] for each in subset["addresses"]] == [address]


def test_an_agent_writes_of_its_own_node_alone(stage: Stage, both: Installation) -> None:
    """By roles alone it could write of any, before Kubernetes 1.32 as the document says."""
    agent = next(each for each in parts(stage, "agent") if each["spec"]["nodeName"] == "node1")["metadata"]["name"]
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
        stage.kubectl("exec", "-n", NAMESPACE, agent, "--", "python3", "-c", write)
        refused = ""
    except Unavailable as error:
        refused = str(error)
    assert ("an agent writes of its own node alone" in refused) == (stage.binaries.version >= (1, 32))


def test_the_doctor_needs_no_more_rights_than_its_document_says(stage: Stage, both: Installation) -> None:
    table = (PROJECT / "docs/cluster.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table if line.startswith("|")]
    rules = [Rule(what, verbs).policy() for who, what, verbs in rows if who in ("doctor", "reader")]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "doctor"}, "rules": rules}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    stage.kubectl("create", "clusterrolebinding", "doctor", "--clusterrole=doctor", "--user=doctor")
    try:
        config = stage.control.authority.kubeconfig("doctor", "doctor")
        assert "it answers, and refuses nonsense" in both.shell(f"lamina doctor --kubeconfig {config}")
        assert "No pod" in both.shell(f"lamina pods --kubeconfig {config}")
    finally:
        stage.kubectl("delete", "clusterrole,clusterrolebinding", "doctor")
