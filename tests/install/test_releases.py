"""A release may have any name, and a cluster one installation."""

import json

import pytest

from tests.install.helm_release import NAMESPACE, Release
from tests.kubectl import Kubectl


@pytest.mark.parametrize("name", ["gpu-sharing", "123"])
def test_a_release_has_any_name(name: str, release: Release) -> None:
    release.install(name)
    release.run("upgrade", name, "lamina-chart", *NAMESPACE, "--reset-then-reuse-values", "--set", "agent.mig=true")
    (listed,) = json.loads(release.run("list", "--all-namespaces", "--output", "json"))
    assert (listed["name"], listed["status"], listed["revision"]) == (name, "deployed", "2")


def test_a_second_release_is_refused_in_one_sentence(release: Release) -> None:
    release.install("first")
    with pytest.raises(AssertionError, match=r"already, by the release first; a cluster has one installation, so"):
        release.install("second")


def test_a_release_next_to_an_installation_without_helm_is_refused(release: Release, kubectl: Kubectl) -> None:
    hooks = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    kubectl("create", "-f", "-", stdin=json.dumps(hooks | {"metadata": {"name": "lamina.dev"}}))
    with pytest.raises(AssertionError, match="already, without Helm; remove it with lamina uninstall"):
        release.install()
