"""Admission policies for what roles cannot express: which objects of a permitted kind a client may write.

All agents share one service account, and a tenant may have all permissions in their namespace.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.core.api_group import API_VERSION
from lamina.core.component_names import NAMESPACE
from lamina.dialects.claim_gate import GATE
from lamina.dialects.registry import label_prefixes
from lamina.install.agent import DRA_WANTED
from lamina.install.names import AGENT, CONTROLLER, cluster_meta
from lamina.install.terms import Joined, Since, Term, Value, When

_ADMISSION = "admissionregistration.k8s.io/v1"
_HAS_POLICIES = Since(1, 30)
_TOKEN_NAMES_NODE = Since(1, 32)
"""Since then, the token of a service account names the node of its pod."""
_NODE = "authentication.kubernetes.io/node-name"
_MIG_STATE = "nvidia.com/"
"""The prefix of the labels by which agents report the state of MIG."""


def policies() -> list[Any]:
    """The policies that the version of the cluster supports."""
    return [
        *(When(_TOKEN_NAMES_NODE, part) for part in _agents_write_own_node()),
        *(When(_TOKEN_NAMES_NODE, part) for part in _agents_write_own_slices()),
        *(When(_HAS_POLICIES, part) for part in _only_controller_writes_grants()),
        *(When(_HAS_POLICIES, part) for part in _tickets_by_placement_alone()),
        *(When(DRA_WANTED, part) for part in _controller_makes_own_classes()),
        *(When(DRA_WANTED, part) for part in _only_controller_lifts_gates()),
    ]


def _agents_write_own_node() -> list[Any]:
    """An agent may write about its own node only what kubelet may, or less: no taints, and only its own labels."""
    prefixes = sorted({_MIG_STATE, *label_prefixes()})
    directions = (("object", "oldObject"), ("oldObject", "object"))
    other_labels = " && ".join(_labels_kept(these, those, prefixes) for these, those in directions)
    validations = {
        "an agent may only write objects of its own node": f"'{_NODE}' in request.userInfo.extra && "
        f"object.metadata.name in request.userInfo.extra['{_NODE}']",
        "an agent may not change the spec of a node": "request.resource.resource != 'nodes' || "
        "object.spec == oldObject.spec",
        f"an agent may only change labels that begin with {' or '.join(prefixes)}": "request.resource.resource != "
        f"'nodes' || ({other_labels})",
    }
    rules = [_write_rule("lamina.dev", "*", ["inventories"]), _write_rule("", "v1", ["nodes", "nodes/status"])]
    return _policy(AGENT, AGENT, rules, validations, {"an-agent": _is(AGENT)})


def _agents_write_own_slices() -> list[Any]:
    """An agent may only write and delete the slices of its own node: by these the scheduler allocates."""
    written = "(request.operation == 'DELETE' ? oldObject : object)"
    expression = (
        f"'{_NODE}' in request.userInfo.extra && has({written}.spec.nodeName) && "
        f"{written}.spec.nodeName in request.userInfo.extra['{_NODE}']"
    )
    rule = _write_rule("resource.k8s.io", "*", ["resourceslices"])
    rules = [rule | {"operations": [*rule["operations"], "DELETE"]}]
    validations = {"an agent may only write resource slices of its own node": expression}
    return _policy("lamina-slices", AGENT, rules, validations, {"an-agent": _is(AGENT)})


def _labels_kept(these: str, those: str, prefixes: Sequence[str]) -> str:
    """CEL: whether all labels of `these` that agents do not write are also in `those`."""
    labels, other = f"{these}.metadata.labels", f"{those}.metadata.labels"
    written = " || ".join(f"name.startsWith('{prefix}')" for prefix in prefixes)
    kept = f"has({other}) && name in {other} && {other}[name] == {labels}[name]"
    return f"(!has({labels}) || {labels}.all(name, {written} || ({kept})))"


def _only_controller_writes_grants() -> list[Any]:
    """Agents act on grants, so a client that could write one could take what others hold. Changes of metadata are
    allowed, because the garbage collector makes them."""
    expression = f"{_is(CONTROLLER)} || (request.operation == 'UPDATE' && object.spec == oldObject.spec)"
    rules = [_write_rule("lamina.dev", "*", ["grants"])]
    return _policy(
        "lamina-grants", CONTROLLER, rules, {"only the controller of Lamina may write grants": expression}, {}
    )


def _tickets_by_placement_alone() -> list[Any]:
    """No pod may be created on a node with its tickets: it would take them without a grant, whatever its scheduler.

    The Inventory of each node says which these are, so that pods on other nodes, and pods with native devices, pass.
    The kind of the parameters goes before the policy does when Lamina is removed, and then it must stop no pod.
    """
    limits = "c.resources.limits"
    containers = "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])"
    takes = f"params.spec.tickets.exists(name, name in {limits} && string({limits}[name]) != '0')"
    expression = (
        "object.spec.nodeName != params.metadata.name || !has(params.spec.tickets) || "
        f"!({containers}).exists(c, has(c.resources) && has({limits}) && {takes})"
    )
    message = "a pod that is created on a node gets none of its shared GPUs; remove nodeName so that it is placed"
    conditions = {
        "on-a-node": "has(object.spec.nodeName) && object.spec.nodeName != ''",
        "not-by-kubelet": "!('system:nodes' in request.userInfo.groups)",
    }
    rules = [{**_write_rule("", "v1", ["pods"]), "operations": ["CREATE"]}]
    policy, binding = _policy("lamina-tickets", CONTROLLER, rules, {message: expression}, conditions)
    policy["spec"] |= {"failurePolicy": "Ignore", "paramKind": {"apiVersion": API_VERSION, "kind": "Inventory"}}
    binding["spec"]["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    return [policy, binding]


def _controller_makes_own_classes() -> list[Any]:
    """The controller may only create DeviceClasses of its own driver: a class decides for the whole cluster which
    devices pods get, those with extended resources of other vendors included. No other account of Lamina may at all."""
    driver = Value("dra.driverName")
    own = Joined(
        """object.spec.selectors.exists(each, each.cel.expression.matches("^device[.]driver == '""",
        driver,
        """' && device[.]attributes[[]'[a-z0-9.-]+'[]][.]type == '[a-z-]+'$"))""",
    )
    served = Joined(
        "!has(object.spec.extendedResourceName) || object.metadata.name == '",
        driver,
        "' && object.spec.extendedResourceName.endsWith('/gpu')",
    )
    rule = _write_rule("resource.k8s.io", "*", ["deviceclasses"])
    validations = {
        "Lamina may only create classes of its own devices": own,
        "only the class of Lamina's driver may serve a resource, the one that counts GPUs": served,
    }
    return _policy("lamina-device-classes", CONTROLLER, [rule], validations, {"the-controller": _is(CONTROLLER)})


def _only_controller_lifts_gates() -> list[Any]:
    """Who may change a pod could lift its gate too, and so have a GPU in excess of a quota."""

    def has_gate(pod: str) -> str:
        gates = f"{pod}.spec.schedulingGates"
        return f"(has({gates}) && {gates}.exists(gate, gate.name == '{GATE}'))"

    rule = _write_rule("", "v1", ["pods"]) | {"operations": ["UPDATE"]}
    validations = {
        f"only the controller of Lamina may lift the gate {GATE}": f"{_is(CONTROLLER)} || {has_gate('object')}"
    }
    return _policy("lamina-claim-gates", CONTROLLER, [rule], validations, {"a-pod-with-it": has_gate("oldObject")})


def _is(part: str) -> str:
    return f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{part}'"


def _policy(
    name: str, part: str, rules: list[Any], validations: Mapping[str, str | Term], conditions: dict[str, str]
) -> list[Any]:
    """A policy and its binding. `validations` are keyed by their message, `conditions` by their name."""
    spec: dict[str, Any] = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}}
    if conditions:
        spec["matchConditions"] = [{"name": each, "expression": text} for each, text in conditions.items()]
    spec["validations"] = [{"expression": text, "message": message} for message, text in validations.items()]
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": cluster_meta(name, part),
            "spec": spec,
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": cluster_meta(name, part),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def _write_rule(group: str, version: str, resources: list[str]) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": "*",
    }
