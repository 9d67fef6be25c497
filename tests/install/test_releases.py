"""A release may have any name, and a cluster one installation."""

import json

import pytest

from lamina.core.component_names import DEFAULT_NAMESPACE
from tests.install.helm_release import Release
from tests.kubectl import Kubectl


@pytest.mark.parametrize("name", ["gpu-sharing", "123"])
@pytest.mark.parametrize("namespace", [DEFAULT_NAMESPACE, "gpus", "456"])
def test_a_release_has_any_name_and_namespace(name: str, namespace: str, release: Release, kubectl: Kubectl) -> None:
    release.install(name, namespace)
    changed = ("--reset-then-reuse-values", "--set", "agent.mig=true")
    release.run("upgrade", name, "lamina-chart", "--namespace", namespace, *changed)
    (listed,) = json.loads(release.run("list", "--all-namespaces", "--output", "json"))
    assert (listed["name"], listed["status"], listed["revision"]) == (name, "deployed", "2")
    placed = kubectl("get", "deployments,daemonsets,configmaps", "-A", "-o", "jsonpath={.items[*].metadata.namespace}")
    assert {*placed.split()} == {namespace}


def test_a_second_release_is_refused_in_one_sentence(release: Release) -> None:
    release.install("first")
    with pytest.raises(
        AssertionError, match=r"already, by the release first in the namespace lamina-system; a cluster has one"
    ):
        release.install("second")


def test_a_second_release_of_the_same_name_is_refused_in_another_namespace(release: Release) -> None:
    release.install()
    with pytest.raises(AssertionError, match=r"already, by the release lamina in the namespace lamina-system; a clus"):
        release.install(namespace="gpu-sharing")


def test_a_release_next_to_an_installation_without_helm_is_refused(release: Release, kubectl: Kubectl) -> None:
    hooks = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    kubectl("create", "-f", "-", stdin=json.dumps(hooks | {"metadata": {"name": "lamina.dev"}}))
    with pytest.raises(AssertionError, match="already, without Helm; remove it with lamina uninstall"):
        release.install()
