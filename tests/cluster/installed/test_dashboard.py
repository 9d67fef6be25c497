"""The dashboard in the cluster: two users look at it, and each sees what the API server lets them list."""

import json
from collections.abc import Iterator

import pytest

from lamina.install.names import DASHBOARD
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.installation import Installation
from tests.cluster.installed.queries import NAMESPACE, SHARE, parts, rolled_out
from tests.cluster.queries import Object, pod
from tests.waiting import wait_until

TEAMS = ("team-a", "team-b")
LOOKS = (
    "import json, ssl, sys, urllib.error, urllib.request\n"
    "context = ssl.create_default_context()\n"
    "context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n"
    "request = urllib.request.Request('https://{address}/events', headers={{'Lamina-Token': '{token}'}})\n"
    "try:\n"
    "    answer = urllib.request.urlopen(request, context=context, timeout=20)\n"
    "except urllib.error.HTTPError as refused:\n"
    "    print(json.dumps({{'refused': refused.code}}))\n"
    "    sys.exit()\n"
    "for line in answer:\n"
    "    if line.startswith(b'data:'):\n"
    "        print(line[5:].decode())\n"
    "        break\n"
)
"""Prints the first event."""


@pytest.fixture(scope="module")
def address(cluster: RealCluster, both: Installation) -> Iterator[str]:
    both.shell(both.command("lamina install --set image").replace(" --set ", " --set dashboard.enabled=true --set ", 1))
    rolled_out(cluster, f"deployment/{DASHBOARD}")
    yield cluster.kubectl("get", "service", DASHBOARD, "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}")
    # It asks until it has ended, and has its rights as long.
    cluster.kubectl("delete", "deployment", DASHBOARD, "-n", NAMESPACE)
    wait_until(lambda: not parts(cluster, "dashboard"), lambda: "pods of the dashboard stay")
    own = "service,networkpolicy,serviceaccount,role,rolebinding"
    cluster.kubectl("delete", own, DASHBOARD, "-n", NAMESPACE)
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", DASHBOARD)
    cluster.kubectl("delete", "clusterrole", f"{DASHBOARD}-viewer")


@pytest.fixture(scope="module")
def teams(cluster: RealCluster, address: str) -> Iterator[None]:
    """Two namespaces, each with a pod that has a share and a user who may list its pods."""
    for team in TEAMS:
        cluster.kubectl("create", "namespace", team)
        cluster.kubectl("create", "serviceaccount", "viewer", "-n", team)
        cluster.kubectl("create", "role", "viewer", "--verb=list", "--resource=pods", "-n", team)
        bind(cluster, team, "viewer", "role/viewer")
        cluster.kubectl("apply", "-n", team, "-f", "-", stdin=pod(f"pod-of-{team}", limits=SHARE, node="node1"))
    bind(cluster, "team-b", "map", f"clusterrole/{DASHBOARD}-viewer", cluster_wide=True)
    for team in TEAMS:
        cluster.kubectl("wait", "--for=condition=Ready", "pods", "--all", "-n", team, "--timeout=120s", timeout=130)
    yield
    cluster.kubectl("delete", "clusterrolebinding", "map")
    cluster.kubectl("delete", "namespace", *TEAMS, timeout=120)


def bind(cluster: RealCluster, team: str, name: str, role: str, *, cluster_wide: bool = False) -> None:
    """Give a role to the viewer of the team."""
    kind, _, of = role.partition("/")
    words = ["clusterrolebinding", name] if cluster_wide else ["rolebinding", name, "-n", team]
    cluster.kubectl("create", *words, f"--{kind}={of}", f"--serviceaccount={team}:viewer")


def look(cluster: RealCluster, address: str, token: str) -> Object:
    """The first event that a viewer with this token gets, or the status of the refusal."""
    said: Object = json.loads(cluster.control.sandbox.run("python3", "-c", LOOKS.format(address=address, token=token)))
    return said


def token_of(cluster: RealCluster, team: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{team}/serviceaccounts/viewer/token"
    made = cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(request))
    return str(json.loads(made)["status"]["token"])


def pods_in(event: Object) -> list[str]:
    return sorted(f"{card['namespace']}/{card['name']}" for card in event["changes"]["pods"].values())


@pytest.mark.usefixtures("teams")
def test_each_user_sees_the_pods_that_they_may_list(cluster: RealCluster, address: str) -> None:
    tokens = {team: token_of(cluster, team) for team in TEAMS}
    for team, token in tokens.items():
        wait_until(lambda team=team, token=token: pods_in(look(cluster, address, token)) == [f"{team}/pod-of-{team}"])
    first, second = (look(cluster, address, tokens[team]) for team in TEAMS)
    assert first["nodes_hidden"] and not first["changes"].get("nodes")
    assert "team-b" not in json.dumps(first)
    assert sorted(second["changes"]["nodes"]) == ["node1", "node2"]
    assert "team-a" not in json.dumps(second)
    held = [part for gpu in second["changes"]["nodes"]["node1"]["gpus"] for part in gpu["parts"]]
    assert sorted(part["name"] for part in held) == ["other namespaces", "team-b/pod-of-team-b"]


@pytest.mark.usefixtures("teams")
def test_no_one_else_sees_anything(cluster: RealCluster, address: str) -> None:
    assert look(cluster, address, "") == look(cluster, address, "made-up") == {"refused": 401}
