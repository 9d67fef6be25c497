"""The rights of each part, held against all that it asked of the API server while the tests of this folder ran."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from lamina.install import rights
from lamina.install.names import AGENT, CONTROLLER, SCHEDULER
from tests.cluster.components.audit import Asked
from tests.cluster.components.cluster import RealCluster

FORBIDDEN = 403
GIVEN = {
    CONTROLLER: (*rights.CONTROLLER_CLUSTER, *rights.CONTROLLER_OWN),
    AGENT: (*rights.AGENT_CLUSTER, *rights.AGENT_OWN, *rights.AGENT_OF_NVIDIA),
    SCHEDULER: rights.SCHEDULER_OWN,
}
RARE = {
    (CONTROLLER, "create", "customresourcedefinitions.apiextensions.k8s.io"): "one was removed, or none was applied",
    (CONTROLLER, "update", "customresourcedefinitions.apiextensions.k8s.io"): "a newer release knows more of them",
    (CONTROLLER, "create", "mutatingwebhookconfigurations.admissionregistration.k8s.io"): "it was removed",
    (CONTROLLER, "delete", "mutatingwebhookconfigurations.admissionregistration.k8s.io"): "admission is switched off",
    (CONTROLLER, "update", "secrets"): "a certificate is about to end",
    (CONTROLLER, "create", "pods/eviction"): "a pod has had tickets without a grant for minutes",
    (CONTROLLER, "get", "grants.lamina.dev"): "the answer to a bind was lost",
    (CONTROLLER, "update", "grants.lamina.dev"): "a running pod is resized",
    (CONTROLLER, "delete", "grants.lamina.dev"): "a bind was cut off, or its pod is gone and no one collects garbage",
    (CONTROLLER, "get", "podgroups.scheduling.k8s.io"): "a pod belongs to a group of that kind",
    (CONTROLLER, "get", "podgroups.scheduling.x-k8s.io"): "a pod belongs to a group of that kind",
    (CONTROLLER, "get", "podgroups.scheduling.volcano.sh"): "a pod belongs to a group of that kind",
    (CONTROLLER, "patch", "resourcequotas/status"): "a quota limits GPUs",
    (CONTROLLER, "list", "poddisruptionbudgets.policy"): "a pod may evict others",
    (CONTROLLER, "get", "events"): "an event of an earlier run happens again",
    (CONTROLLER, "patch", "events"): "an event happens again",
    (CONTROLLER, "create", "events"): "users are informed",
    (AGENT, "watch", "customresourcedefinitions.apiextensions.k8s.io"): "NVIDIA's kind is not there yet",
    (AGENT, "get", "events"): "an event of an earlier run happens again",
    (AGENT, "patch", "events"): "an event happens again",
}
"""Rights of which these tests may give no occasion, and what does. tests/house has those of parts behind fakes."""
READS_IN_VAIN = ("configmaps", "nvidia-gpu-operator")
"""An agent that does not know where NVIDIA's ConfigMap is has a test of its own."""
HELMS_TEST = "lamina-test"
"""Has the rights of viewers, and `lamina gpus` there goes on without the figures that these may not ask for."""


@pytest.fixture
def asked(cluster: RealCluster, request: pytest.FixtureRequest) -> set[Asked]:
    files = {item.path for item in request.session.items}
    if not files >= set(Path(__file__).parent.glob("test_*.py")):
        pytest.skip("this tells something only after all tests of this folder")
    return set(cluster.control.audit.asked())


def pairs(asked: Iterable[Asked]) -> set[tuple[str, str, str]]:
    return {(each.account, each.verb, each.resource) for each in asked}


def test_no_component_made_a_forbidden_request(asked: set[Asked]) -> None:
    refused = {each for each in asked if each.code == FORBIDDEN and each.account != HELMS_TEST}
    assert {each for each in refused if (each.resource, each.namespace) != READS_IN_VAIN} == set()


@pytest.mark.parametrize("account", GIVEN)
def test_every_right_is_used_or_has_its_occasion(asked: set[Asked], account: str) -> None:
    given = {(account, verb, rule.resource) for rule in GIVEN[account] for verb in rule.verbs.split()}
    unused = given - pairs(asked) - set(RARE)
    assert unused == set()
    if account != SCHEDULER:  # which has those of Kubernetes' own besides
        given |= {(AGENT, verb, rule.resource) for rule in rights.CLAIMS_CLUSTER for verb in rule.verbs.split()}
        of_control = rights.CLAIM_OBJECTS_CLUSTER
        given |= {(CONTROLLER, verb, rule.resource) for rule in of_control for verb in rule.verbs.split()}
        assert pairs(each for each in asked if each.account == account and each.code < FORBIDDEN) <= given
