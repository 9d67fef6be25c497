"""The roles of an installation, whose rules other tests compare with what the components request."""

from lamina.install import rights

GIVEN = {
    "controller": (
        *rights.CONTROLLER_CLUSTER,
        *rights.CONTROLLER_OWN,
        *rights.DEFRAGMENTATION_CLUSTER,
        *rights.IDLE_SHARES_CLUSTER,
        *rights.BORROWERS_CLUSTER,
        *rights.PREEMPTION_CLUSTER,
        *rights.CLAIM_OBJECTS_CLUSTER,
    ),
    "dashboard": (*rights.DASHBOARD_CLUSTER, *rights.DASHBOARD_OWN),
    "agent": (
        *rights.AGENT_CLUSTER,
        *rights.CLAIMS_CLUSTER,
        *rights.BINDING_CLUSTER,
        *rights.AGENT_OWN,
        *rights.AGENT_OF_NVIDIA,
    ),
}


def test_roles_of_an_installation_are_these_rules() -> None:
    """All rules of components are given, but for the right to make a namespace that the installation makes."""
    given = {rule for rules in GIVEN.values() for rule in rules} | {*rights.SCHEDULER_OWN, *rights.METRICS_CLUSTER}
    listed = {rule for rules in rights.OF_COMPONENTS.values() for rule in rules}
    assert listed - given == {rights.MAKES_ITS_NAMESPACE}
    assert given <= listed


def test_no_role_allows_everything() -> None:
    for rules in GIVEN.values():
        for rule in rules:
            policy = rule.policy()
            assert "*" not in [*policy["verbs"], *policy["resources"], *policy["apiGroups"]]


def test_subresources_and_groups_are_taken_apart() -> None:
    assert rights.Rule("pods/binding", "create").policy()["resources"] == ["pods/binding"]
    policy = rights.Rule("leases.coordination.k8s.io", "get", ("a",)).policy()
    assert policy == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get"],
        "resourceNames": ["a"],
    }
