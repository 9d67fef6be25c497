"""Whom admission policies stop: their expressions over writes as the API server would show them."""

from collections.abc import Mapping
from typing import Any

import pytest

from lamina.agent.mig.partitioner import STATE
from lamina.dialects.nvidia.feature_labels import LABELS
from lamina.install import values
from lamina.install.objects import objects
from lamina.install.render import render
from lamina.install.terms import Setting
from lamina_lab.api.webhooks.match_conditions import ConditionError, holds

ACCOUNT = "system:serviceaccount:lamina-system"
AGENT, CONTROL = f"{ACCOUNT}:lamina-agent", f"{ACCOUNT}:lamina-control"
NODE = "authentication.kubernetes.io/node-name"
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
BEFORE: dict[str, Any] = {
    "metadata": {"name": "one", "labels": {"kubernetes.io/hostname": "one", "nvidia.com/gpu.count": "1"}},
    "spec": {"taints": [TAINT]},
    "status": {},
}


def policy(name: str, minor: int = 36) -> Any:
    made = render(objects(), Setting(values.plain(values.Values()), (1, minor, 0)))
    found = [o["spec"] for o in made if o["kind"] == "ValidatingAdmissionPolicy" and o["metadata"]["name"] == name]
    bound = [o["spec"] for o in made if o["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [each["validationActions"] for each in bound if each["policyName"] == name] == [["Deny"]] * len(found)
    return found[0] if found else None


def stopped(name: str, request: Mapping[str, Any], new: Any, old: Any = None) -> str:
    """The answer to the writer; empty where the write passes. An expression that cannot be evaluated stops it too."""
    seen = {"request": dict(request), "object": new, "oldObject": old}
    spec = policy(name)
    assert spec["failurePolicy"] == "Fail"
    if not all(holds(each["expression"], seen) for each in spec.get("matchConditions", ())):
        return ""
    for each in spec["validations"]:
        try:
            if not holds(each["expression"], seen):
                return str(each["message"])
        except ConditionError:
            return "fails"
    return ""


def by_agent(new: Any, old: Any, *, on: str = "one", resource: str = "nodes") -> str:
    user = {"username": AGENT, "extra": {NODE: [on]}}
    request = {"userInfo": user, "operation": "UPDATE" if old else "CREATE", "resource": {"resource": resource}}
    return stopped("lamina-agent", request, new, old)


def node(labels: Mapping[str, str | None] = {}, **more: Any) -> Any:
    meta = {**BEFORE["metadata"], "labels": {**BEFORE["metadata"]["labels"], **labels}}
    meta["labels"] = {key: value for key, value in meta["labels"].items() if value is not None}
    return {**BEFORE, "metadata": meta, **more}


def test_an_agent_writes_what_it_has_to_of_its_node() -> None:
    assert all(name.startswith("nvidia.com/") for name in (*LABELS, STATE))
    for new in (
        node({"nvidia.com/gpu.count": "8", "nvidia.com/mig-1g.5gb.count": "1"}),
        node({"nvidia.com/gpu.count": None}),
        node(status={"capacity": {"nvidia.com/gpumem": "1"}}),
        {**BEFORE, "metadata": {**BEFORE["metadata"], "annotations": {"hami.io/node-nvidia-register": "x"}}},
    ):
        assert by_agent(new, BEFORE) == ""
    bare = {"metadata": {"name": "one"}, "spec": {}}
    assert by_agent({**bare, "metadata": {"name": "one", "labels": {"nvidia.com/gpu.count": "1"}}}, bare) == ""
    inventory = {"metadata": {"name": "one"}, "spec": {"node": "one"}}
    for old in (None, inventory):
        assert by_agent(inventory, old, resource="inventories") == ""


@pytest.mark.parametrize("resource", ["nodes", "inventories"])
def test_an_agent_writes_of_no_other_node(resource: str) -> None:
    assert by_agent(node(), BEFORE, on="two", resource=resource) == "an agent may only write objects of its own node"
    no_node = {"userInfo": {"username": AGENT, "extra": {}}, "operation": "UPDATE", "resource": {"resource": resource}}
    assert stopped("lamina-agent", no_node, node(), BEFORE) == "an agent may only write objects of its own node"
    assert stopped("lamina-agent", {**no_node, "userInfo": {"username": AGENT}}, node(), BEFORE) == "fails"


@pytest.mark.parametrize(
    "new",
    [
        node({"node-role.kubernetes.io/control-plane": ""}),
        node({"node-restriction.kubernetes.io/trusted": "true"}),
        node({"pool": "secret"}),
        node({"kubernetes.io/hostname": "two"}),
        node({"kubernetes.io/hostname": None}),
        {**BEFORE, "metadata": {"name": "one"}},
        node(spec={}),
        node(spec={"taints": [TAINT], "unschedulable": True}),
    ],
)  # fmt: skip
def test_an_agent_draws_no_pods_of_others_to_its_node(new: Any) -> None:
    """By labels that pods select, or without the taints that keep them away."""
    assert by_agent(new, BEFORE).startswith(("an agent may not change", "an agent may only change"))


def test_others_write_nodes_as_before() -> None:
    administrator = {"userInfo": {"username": "admin"}, "operation": "UPDATE", "resource": {"resource": "nodes"}}
    assert stopped("lamina-agent", administrator, node({"pool": "a"}, spec={}), BEFORE) == ""


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_an_agent_writes_resource_slices_of_its_own_node_only(operation: str) -> None:
    found = {"metadata": {"name": "s"}, "spec": {"nodeName": "one"}}
    new, old = (None if operation == "DELETE" else found), (None if operation == "CREATE" else found)
    for on, passes in (("one", True), ("two", False)):
        user = {"username": AGENT, "extra": {NODE: [on]}}
        request = {"userInfo": user, "operation": operation, "resource": {"resource": "resourceslices"}}
        assert (stopped("lamina-slices", request, new, old) == "") == passes
    everywhere = {"metadata": {"name": "s"}, "spec": {"allNodes": True}}
    assert stopped("lamina-slices", {**request, "operation": "CREATE"}, everywhere) != ""
    assert stopped("lamina-slices", {**request, "userInfo": {"username": "kube-scheduler"}}, new, old) == ""


GRANT = {"metadata": {"name": "g"}, "spec": {"node": "one"}}


@pytest.mark.parametrize(
    ("user", "new", "old", "passes"),
    [
        (CONTROL, GRANT, None, True),
        (CONTROL, {**GRANT, "spec": {"node": "two"}}, GRANT, True),
        ("tenant", GRANT, None, False),
        (AGENT, GRANT, None, False),
        ("tenant", {**GRANT, "spec": {"node": "two"}}, GRANT, False),
        ("system:serviceaccount:kube-system:generic-garbage-collector", {**GRANT, "metadata": {}}, GRANT, True),
    ],
)
def test_grants_are_written_by_the_control_part_alone(user: str, new: Any, old: Any, passes: bool) -> None:
    request = {"userInfo": {"username": user}, "operation": "UPDATE" if old else "CREATE"}
    assert (stopped("lamina-grants", request, new, old) == "") == passes


@pytest.mark.parametrize(("minor", "there"), [(20, []), (29, []), (30, ["lamina-grants"]), (31, ["lamina-grants"])])
def test_older_servers_get_none_that_they_cannot_hold(minor: int, there: list[str]) -> None:
    assert [name for name in ("lamina-agent", "lamina-grants") if policy(name, minor)] == there
