"""An installation in any namespace: the same objects as in the default one, and nothing that names that one."""

import json

import pytest

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.install.chart import namespace_object, objects
from lamina.install.values import plain, read
from lamina.ports.kube import Object
from tests.helm import helm
from tests.install.deploy_files import DEPLOY

CHART = DEPLOY / "helm" / "lamina"
EVERYTHING = [
    "agent.mig=true",
    "dashboard.enabled=true",
    "agent.mps=true",
    "dra.enabled=true",
    "openshift.enabled=true",
    "metrics.protected=true",
    "metrics.dashboards=true",
    "metrics.rules=true",
    "serviceMonitor.enabled=true",
    "agent.pools=[{name: arm64}]",
    "image.repository=example.com/lamina",
    "image.tag=v1",
]
OF_THE_CLUSTER = (
    *("ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "SecurityContextConstraints"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition"),
)


def made(namespace: str = DEFAULT_NAMESPACE) -> list[Object]:
    return objects(plain(read([], EVERYTHING)), (1, 36, 0), namespace=namespace)


@pytest.mark.parametrize("namespace", ["gpu-sharing", "kube-gpu", "a", "7", "1e3", "null", "on"])
def test_the_objects_differ_in_nothing_but_the_namespace(namespace: str) -> None:
    """Names that YAML takes for numbers and the like included."""
    usual = json.dumps(made())
    assert json.loads(usual.replace(DEFAULT_NAMESPACE, namespace)) == made(namespace)
    assert DEFAULT_NAMESPACE not in json.dumps(made(namespace))


def test_every_object_of_a_namespace_is_in_it() -> None:
    for each in made("gpu-sharing"):
        if each["metadata"].get("namespace") == "kube-system":
            assert each["kind"] == "RoleBinding", "to a role of Kubernetes"
            continue
        expected = None if each["kind"] in OF_THE_CLUSTER else "gpu-sharing"
        assert each["metadata"].get("namespace") == expected, each["metadata"]["name"]


def test_accounts_have_their_rights_there() -> None:
    policies = [each for each in made("gpu-sharing") if each["kind"] == "ValidatingAdmissionPolicy"]
    texts = {each["metadata"]["name"]: json.dumps(each) for each in policies}
    assert "system:serviceaccount:gpu-sharing:lamina-agent" in texts["lamina-slices"]
    assert "system:serviceaccount:gpu-sharing:lamina-controller" in texts["lamina-claim-gates"]
    bindings = [each for each in made("gpu-sharing") if each["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    subjects = [subject for each in bindings for subject in each["subjects"]]
    assert len(subjects) > 10 and {subject["namespace"] for subject in subjects} == {"gpu-sharing"}


def test_components_know_their_namespace_from_their_pods() -> None:
    pods = [each["spec"]["template"]["spec"] for each in made() if each["kind"] in ("Deployment", "DaemonSet")]
    containers = [each for pod in pods for each in (*pod["containers"], *pod.get("initContainers", ()))]
    own = {"name": "LAMINA_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    knowing = {each["name"] for each in containers if own in each.get("env", ())}
    assert knowing == {"controller", "admission", "agent", "configure", "dashboard"}


def test_a_namespace_of_others_does_not_get_the_label_by_which_it_would_be_deleted() -> None:
    privileged = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    assert namespace_object("gpus", of_others=True)["metadata"] == {"name": "gpus", "labels": privileged}
    assert namespace_object("gpus")["metadata"]["labels"]["app.kubernetes.io/part-of"] == "lamina"


def test_helm_renders_it_for_the_namespace_of_the_release() -> None:
    setting = [option for each in EVERYTHING if "[" not in each for option in ("--set", each)]
    done = helm("template", "gpus", str(CHART), "--namespace", "gpu-sharing", *setting)
    assert done.returncode == 0, done.stderr
    assert 'namespace: "gpu-sharing"' in done.stdout and DEFAULT_NAMESPACE not in done.stdout
