"""Whom admission policies stop: their expressions over writes as the API server would show them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import pytest

from lamina.agent.mig.label_partitioner import STATE
from lamina.agent.parts import COMPONENT
from lamina.controller.eviction.idle_shares import REPLICAS
from lamina.core.component_names import LEADER_LABEL
from lamina.core.gpus import CORDON
from lamina.core.sizes import RESIZE
from lamina.dialects.claim_gate import GATE
from lamina.dialects.nvidia.feature_labels import LABELS
from lamina.dra.names import DRIVER, device_classes
from lamina.install import values
from lamina.install.chart import objects
from lamina.install.rights import CONTROLLER_CLUSTER, DEFRAGMENTATION_CLUSTER, IDLE_SHARES_CLUSTER, PREEMPTION_CLUSTER
from lamina_lab.api.webhooks.match_conditions import ConditionError, holds

ACCOUNT = "system:serviceaccount:lamina-system"
AGENT, CONTROLLER = f"{ACCOUNT}:lamina-agent", f"{ACCOUNT}:lamina-controller"
NODE = "authentication.kubernetes.io/node-name"
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
BEFORE: dict[str, Any] = {
    "metadata": {"name": "one", "labels": {"kubernetes.io/hostname": "one", "nvidia.com/gpu.count": "1"}},
    "spec": {"taints": [TAINT]},
    "status": {},
}


@cache
def policy(name: str, minor: int = 36) -> Any:
    given = values.Values(dra=values.DraValues(enabled=True))
    made = objects(values.plain(given), (1, minor, 0))
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
        (CONTROLLER, GRANT, None, True),
        (CONTROLLER, {**GRANT, "spec": {"node": "two"}}, GRANT, True),
        ("tenant", GRANT, None, False),
        (AGENT, GRANT, None, False),
        ("tenant", {**GRANT, "spec": {"node": "two"}}, GRANT, False),
        ("system:serviceaccount:kube-system:generic-garbage-collector", {**GRANT, "metadata": {}}, GRANT, True),
    ],
)
def test_grants_are_written_by_the_control_part_alone(user: str, new: Any, old: Any, passes: bool) -> None:
    request = {"userInfo": {"username": user}, "operation": "UPDATE" if old else "CREATE"}
    assert (stopped("lamina-grants", request, new, old) == "") == passes


INVENTORY = {"metadata": {"name": "one"}, "spec": {"tickets": ["nvidia.com/gpu", "corp.example/gpus"]}}


def created(pod: Any, node: Any = INVENTORY, *, groups: tuple[str, ...] = ("system:authenticated",)) -> bool:
    """Whether a new pod passes, where this is the Inventory of a node."""
    spec = policy("lamina-tickets")
    assert spec["failurePolicy"] == "Ignore"
    seen = {
        "request": {"userInfo": {"username": "tenant", "groups": list(groups)}, "operation": "CREATE"},
        "object": pod,
        "oldObject": None,
        "params": node,
    }
    if not all(holds(each["expression"], seen) for each in spec["matchConditions"]):
        return True
    return all(holds(each["expression"], seen) for each in spec["validations"])


def new_pod(limits: Mapping[str, str], *, on: str = "one", field: str = "containers", **spec: Any) -> Any:
    plain = {"name": "plain"}
    asks = {"name": "main", "resources": {"limits": dict(limits)}}
    parts = {"containers": [plain], field: [plain, asks]}
    return {"metadata": {"name": "p"}, "spec": {**parts, **({"nodeName": on} if on else {}), **spec}}


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("name", ["nvidia.com/gpu", "corp.example/gpus"])
@pytest.mark.parametrize("scheduler", ["mine", "hami-scheduler", "default-scheduler"])
def test_no_pod_is_created_on_a_node_with_its_tickets(field: str, name: str, scheduler: str) -> None:
    for labels in ({}, {"lamina.dev/webhook": "ignore"}):
        pod = new_pod({name: "10", "cpu": "1"}, field=field, schedulerName=scheduler)
        pod["metadata"]["labels"] = labels
        assert not created(pod)
        assert created(new_pod({name: "10"}, field=field, on="", schedulerName=scheduler))


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        (new_pod({"nvidia.com/gpu": "1"}, on="two"), INVENTORY),
        (new_pod({"nvidia.com/gpu": "0"}), INVENTORY),
        (new_pod({"nvidia.com/mig-1g.5gb": "1", "cpu": "1"}), INVENTORY),
        (new_pod({}), INVENTORY),
        (new_pod({"nvidia.com/gpu": "1"}), {"metadata": {"name": "one"}, "spec": {"plain": [{"count": 4}]}}),
        ({"metadata": {}, "spec": {"nodeName": "one", "containers": [{"name": "c", "resources": {}}]}}, INVENTORY),
    ],
)
def test_other_nodes_native_devices_and_pods_without_tickets_are_not_concerned(pod: Any, node: Any) -> None:
    assert created(pod, node)


def test_kubelet_shows_its_static_pods() -> None:
    assert created(new_pod({"nvidia.com/gpu": "1"}), groups=("system:nodes", "system:authenticated"))


def test_the_policy_reads_inventories_and_stops_no_pod_where_there_are_none() -> None:
    made = objects(values.plain(values.Values()), (1, 36, 0))
    (binding,) = [o["spec"] for o in made if o["kind"].endswith("PolicyBinding") and "paramRef" in o["spec"]]
    assert binding["policyName"] == "lamina-tickets"
    assert binding["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}
    spec = policy("lamina-tickets")
    assert spec["paramKind"] == {"apiVersion": "lamina.dev/v1alpha1", "kind": "Inventory"}
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE"], ["pods"])


@pytest.mark.parametrize(("minor", "there"), [(20, []), (29, []), (30, ["lamina-grants"]), (31, ["lamina-grants"])])
def test_older_servers_get_none_that_they_cannot_hold(minor: int, there: list[str]) -> None:
    assert [name for name in ("lamina-agent", "lamina-grants") if policy(name, minor)] == there


def making_a_class(new: Any, user: str = CONTROLLER) -> str:
    return stopped("lamina-device-classes", {"userInfo": {"username": user}, "operation": "CREATE"}, new)


def selecting(*expressions: str, name: str = "any", **more: Any) -> Any:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **more}}


def test_the_controller_makes_the_classes_of_its_driver() -> None:
    assert [making_a_class(each) for each in device_classes(DRIVER)] == ["", "", ""]
    assert making_a_class(selecting("device.driver == 'nic.example.com'"), "system:admin") == ""


@pytest.mark.parametrize(
    "new",
    [
        selecting("device.driver == 'nic.example.com'"),
        selecting("true"),
        selecting(f"device.driver == '{DRIVER}' || true"),
        selecting(f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu' || true"),
        {"metadata": {"name": "any"}, "spec": {}},
    ],
)
def test_the_controller_makes_no_class_of_other_devices(new: Any) -> None:
    assert making_a_class(new) in ("Lamina may only create classes of its own devices", "fails")


@pytest.mark.parametrize(("name", "resource"), [("any", "nvidia.com/gpu"), (DRIVER, "example.com/nic")])
def test_no_other_class_serves_a_resource(name: str, resource: str) -> None:
    own = device_classes(DRIVER)[0]["spec"]["selectors"][0]["cel"]["expression"]
    said = making_a_class(selecting(own, name=name, extendedResourceName=resource))
    assert said == "only the class of Lamina's driver may serve a resource, the one that counts GPUs"


@pytest.mark.parametrize("user", [CONTROLLER, AGENT, "tenant"])
@pytest.mark.parametrize("before", [[], ["other"], [GATE], ["other", GATE]])
@pytest.mark.parametrize("after", [[], ["other"], [GATE]])
def test_only_the_controller_lifts_the_gate(user: str, before: list[str], after: list[str]) -> None:
    def pod(names: list[str]) -> Any:
        return {"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": name} for name in names]}}

    request = {"userInfo": {"username": user}, "operation": "UPDATE"}
    lifted = GATE in before and GATE not in after
    said = stopped("lamina-claim-gates", request, pod(after), pod(before))
    assert (said != "") == (lifted and user != CONTROLLER)
    assert stopped("lamina-claim-gates", request, {"spec": {}}, {"spec": {}}) == ""


WORKLOAD: Any = {
    "metadata": {"name": "w", "labels": {"app": "w"}, "annotations": {"a": "b"}},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}, "selector": {}},
}
POD: Any = {
    "metadata": {"name": "p", "labels": {"app": "w"}, "annotations": {"a": "b"}, "finalizers": ["keep"]},
    "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [], "schedulingGates": [{"name": GATE}]},
}
NODE_OBJECT: Any = {"metadata": {"name": "n", "labels": {"pool": "a"}, "annotations": {"a": "b"}}, "spec": {}}


def changed(obj: Any, path: str, value: Any) -> Any:
    """A copy with the value at the path, or without the key where it is None."""
    copied = msgspec.json.decode(msgspec.json.encode(obj))
    *parts, last = path.split("|")
    place = copied
    for part in parts:
        place = place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copied


def by_controller(resource: str, new: Any, old: Any, user: str = CONTROLLER) -> str:
    request = {"userInfo": {"username": user}, "operation": "UPDATE", "resource": {"resource": resource}}
    return stopped("lamina-controller", request, new, old)


OTHER_IMAGE = [{"name": "c", "image": "evil"}]


@pytest.mark.parametrize(
    ("resource", "old", "path", "value"),
    [
        ("pods", POD, "metadata|annotations|lamina.dev/resize-status", "done main=1"),
        ("pods", POD, "metadata|annotations|hami.io/vgpu-node", "n"),
        ("pods", POD, f"metadata|labels|{LEADER_LABEL}", "true"),
        ("pods", POD, "metadata|labels|hami.io/vgpu-node", "n"),
        ("pods", POD, "spec|schedulingGates", []),
        ("pods", POD, "spec|schedulingGates", None),
        ("nodes", NODE_OBJECT, f"metadata|annotations|{CORDON}", "GPU-0"),
        ("deployments", WORKLOAD, "spec|replicas", 0),
        ("statefulsets", WORKLOAD, f"metadata|annotations|{REPLICAS}", "2"),
    ],
)
def test_the_controller_changes_what_it_has_to(resource: str, old: Any, path: str, value: Any) -> None:
    assert by_controller(resource, changed(old, path, value), old) == ""
    bare = {"metadata": {"name": "x"}, "spec": {}}
    assert by_controller(resource, bare, bare) == ""


@pytest.mark.parametrize(
    ("resource", "old", "path", "value"),
    [
        ("pods", POD, "spec|containers", OTHER_IMAGE),
        ("pods", POD, "spec|initContainers", OTHER_IMAGE),
        ("pods", POD, "spec|ephemeralContainers", OTHER_IMAGE),
        ("pods", POD, "spec|tolerations", [{"operator": "Exists"}]),
        ("pods", POD, "spec|nodeSelector", {"pool": "a"}),
        ("pods", POD, "spec|affinity", {"nodeAffinity": {}}),
        ("pods", POD, "spec|activeDeadlineSeconds", 1),
        ("pods", changed(POD, "spec|schedulingGates", None), "spec|terminationGracePeriodSeconds", 1),
        ("pods", POD, "metadata|labels|app", "other"),
        ("pods", POD, "metadata|labels|app", None),
        ("pods", POD, "metadata|labels|role", "admin"),
        ("pods", POD, "metadata|finalizers", None),
        ("pods", POD, "metadata|finalizers", []),
        ("pods", POD, "metadata|ownerReferences", [{"kind": "Node"}]),
        ("nodes", NODE_OBJECT, "spec|unschedulable", True),
        ("nodes", NODE_OBJECT, "spec|taints", [TAINT]),
        ("nodes", NODE_OBJECT, "metadata|labels|pool", "b"),
        ("nodes", NODE_OBJECT, "metadata|labels", None),
        ("nodes", NODE_OBJECT, "metadata|annotations|other", "b"),
        ("nodes", NODE_OBJECT, "metadata|annotations", None),
        ("deployments", WORKLOAD, "spec|template|spec|containers", OTHER_IMAGE),
        ("deployments", WORKLOAD, "spec|template|metadata", {"labels": {"role": "admin"}}),
        ("deployments", WORKLOAD, "spec|selector", {"matchLabels": {"a": "b"}}),
        ("deployments", WORKLOAD, "spec|strategy", {"type": "Recreate"}),
        ("deployments", WORKLOAD, "spec|paused", True),
        ("statefulsets", WORKLOAD, "spec|updateStrategy", {"type": "OnDelete"}),
        ("statefulsets", WORKLOAD, "spec|volumeClaimTemplates", [{}]),
        ("statefulsets", WORKLOAD, "metadata|annotations|a", "c"),
        ("deployments", WORKLOAD, "metadata|annotations", None),
        ("deployments", WORKLOAD, "metadata|labels|role", "admin"),
        ("deployments", WORKLOAD, "metadata|ownerReferences", [{"kind": "Node"}]),
    ],
)
def test_who_has_the_token_of_the_controller_changes_nothing_else(
    resource: str, old: Any, path: str, value: Any
) -> None:
    assert by_controller(resource, changed(old, path, value), old).startswith(("the controller may", "of "))
    assert by_controller(resource, changed(old, path, value), old, "system:admin") == ""


def test_the_policy_covers_whatever_the_controller_may_patch_of_others() -> None:
    """Each object that its roles let it patch as a whole, except for those of Lamina."""
    patched = {
        rule.resource.partition(".")[0]
        for rules in (CONTROLLER_CLUSTER, DEFRAGMENTATION_CLUSTER, IDLE_SHARES_CLUSTER, PREEMPTION_CLUSTER)
        for rule in rules
        if {"patch", "update"} & set(rule.verbs.split()) and "/" not in rule.resource and not rule.names
    }
    rules = policy("lamina-controller")["matchConstraints"]["resourceRules"]
    assert {name for rule in rules for name in rule["resources"]} == patched - {"grants", "events"}


def event(component: str | None, kind: str = "Pod", name: str = "p") -> Any:
    return {"source": {"component": component} if component else {}, "involvedObject": {"kind": kind, "name": name}}


@pytest.mark.parametrize(
    ("new", "old", "passes"),
    [
        (event(COMPONENT), None, True),
        (event(COMPONENT), event(COMPONENT), True),
        (event(COMPONENT, "Node", "one"), None, True),
        (event("kubelet"), None, False),
        (event(None), None, False),
        (event(COMPONENT), event("kubelet"), False),
        (event(COMPONENT), event(None), False),
        (event(COMPONENT, name="q"), event(COMPONENT), False),
        (event(COMPONENT, "Node", "two"), None, False),
    ],
)
def test_an_agent_writes_events_in_its_own_name_only(new: Any, old: Any, passes: bool) -> None:
    user = {"username": AGENT, "extra": {NODE: ["one"]}}
    request = {"userInfo": user, "operation": "UPDATE" if old else "CREATE", "resource": {"resource": "events"}}
    assert (stopped("lamina-agent-events", request, new, old) == "") == passes
    assert stopped("lamina-agent-events", {**request, "userInfo": {"username": "kubelet"}}, new, old) == ""


def annotated(size: str | None) -> Any:
    return {"metadata": {"annotations": {"a": "b"} | ({RESIZE: size} if size else {})}}


@pytest.mark.parametrize(
    ("new", "old", "asks"),
    [
        (annotated("main=1"), None, True),
        (annotated("main=1"), annotated(None), True),
        (annotated("main=1"), {"metadata": {}}, True),
        (annotated("main=2"), annotated("main=1"), True),
        (annotated("main=1"), annotated("main=1"), False),
        (annotated(None), annotated("main=1"), False),
        (annotated(None), None, False),
        ({"metadata": {}}, annotated("main=1"), False),
    ],
)
def test_another_size_needs_a_right_of_its_own(new: Any, old: Any, asks: bool) -> None:
    spec = policy("lamina-resize")
    seen = {"request": {"operation": "UPDATE" if old else "CREATE"}, "object": new, "oldObject": old}
    (condition,), (validation,), (rule,) = (
        spec["matchConditions"],
        spec["validations"],
        spec["matchConstraints"]["resourceRules"],
    )
    assert holds(condition["expression"], seen) == asks
    assert (rule["operations"], rule["resources"]) == (["CREATE", "UPDATE"], ["pods", "pods/status"])
    assert spec["failurePolicy"] == "Fail" and validation["expression"] == (
        "authorizer.group('').resource('pods').subresource('resize')"
        ".namespace(request.namespace).check('patch').allowed()"
    )
