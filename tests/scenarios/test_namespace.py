"""Lamina in a namespace of another name: shares, commands and a reset work there, and nothing is written elsewhere."""

import json

import pytest

from lamina.core.component_names import DEFAULT_NAMESPACE
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.reset import reset_and_return
from tests.waiting import wait_until

SPACE = "gpu-sharing"
MACHINES = f"namespace: {SPACE}\nnodes: [{{name: node-0, gpus: [{{model: V100-PCIE-32GB}}]}}]\n"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: share}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000}}
"""


@pytest.fixture(scope="module")
def elsewhere(start_lab: StartLab) -> Lab:
    return start_lab("elsewhere", machines=MACHINES)


def names(lab: Lab, namespace: str) -> list[str]:
    return lab.kubectl("get", "configmaps,secrets,leases,pods", "-n", namespace, "-o", "name").split()


def test_a_share_runs_and_commands_find_the_installation(elsewhere: Lab) -> None:
    elsewhere.apply(POD)
    wait_until(lambda: elsewhere.phases() == {"Running": 1}, elsewhere.described)
    assert "3000MiB" in elsewhere.kubectl("exec", "share", "--", "nvidia-smi")
    for command, expected in (
        (("pods",), "share"),
        (("gpus",), "V100"),
        (("why", "share"), "share"),
        (("config", "show"), f"ConfigMap {SPACE}/lamina"),
        (("doctor", "--all"), "it is in force"),
    ):
        answer = elsewhere.lamina(*command)
        assert expected in answer.stdout, (command, answer.stdout, answer.stderr)
    elsewhere.delete_workloads()


def test_everything_of_the_components_is_in_the_namespace(elsewhere: Lab) -> None:
    expected = {
        "configmap/lamina",
        "secret/lamina-admission",
        "secret/lamina-extender",
        "secret/lamina-extender-client",
        "lease.coordination.k8s.io/lamina-controller",
    }
    wait_until(lambda: expected <= {*names(elsewhere, SPACE)}, lambda: str(names(elsewhere, SPACE)))
    assert [name for name in names(elsewhere, DEFAULT_NAMESPACE) if "lamina" in name] == []
    registered = json.loads(elsewhere.kubectl("get", "mutatingwebhookconfiguration", "lamina.dev", "-o", "json"))
    for webhook in registered["webhooks"]:
        exempt = webhook["namespaceSelector"]["matchExpressions"][0]["values"]
        assert exempt == ["kube-system", SPACE]


def test_another_namespace_is_refused(elsewhere: Lab) -> None:
    refused = elsewhere.lamina("install", "--set", "image.repository=example.com/lamina", "--namespace", "other")
    assert refused.returncode == 2 and f"Lamina is installed in the namespace {SPACE} already" in refused.stderr


def test_a_reset_and_a_return(elsewhere: Lab) -> None:
    cdi = elsewhere.root / elsewhere.name
    (specs,) = (path for path in cdi.rglob("cdi") if path.is_dir())
    reset_and_return(elsewhere, specs, namespace=SPACE)
