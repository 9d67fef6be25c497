"""The roles of an installation are the rights in docs/cluster.md, which other tests compare with what the parts do."""

import re
from pathlib import Path

from lamina.install import rights

TABLE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
NOT_INSTALLED = {("control", "namespaces", "create")}
"""The installation makes the namespace."""
GIVEN = {
    "control": (*rights.CONTROL_CLUSTER, *rights.CONTROL_OWN),
    "agent": (*rights.AGENT_CLUSTER, *rights.AGENT_OWN, *rights.AGENT_OF_NVIDIA),
}


def rows() -> list[list[str]]:
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines() if line.startswith("|")]
    return [row for row in found if row[0] in GIVEN]


def test_the_roles_are_the_table() -> None:
    listed = {(part, resource, verb) for part, resource, verbs, _ in rows() for verb in verbs.split()}
    given = {(part, rule.resource, verb) for part in GIVEN for rule in GIVEN[part] for verb in rule.verbs.split()}
    assert given == listed - NOT_INSTALLED


def test_names_that_the_table_gives_are_the_only_ones() -> None:
    """Where the last column names objects, a role names the same, but for what is made and for names of nodes."""
    for part, resource, _, which in rows():
        named = {name for name in re.findall(r"`([^`]+)`", which) if "NODE" not in name and "-" + "-" not in name}
        ruled = [rule for rule in GIVEN[part] if rule.resource == resource and set(rule.verbs.split()) - {"create"}]
        names = {name for rule in ruled for name in rule.names}
        assert names <= named, (part, resource)
        if not any(not rule.names for rule in ruled):
            assert names == named, (part, resource)


def test_nobody_may_do_everything() -> None:
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
