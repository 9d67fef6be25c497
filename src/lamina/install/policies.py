"""What roles cannot say, said by admission policies: who may write which objects of a kind that he may write.

All agents share one account, and a tenant may have been given everything in his namespace.
"""

from typing import Any

from lamina.install.names import AGENT, CONTROL, NAMESPACE, cluster_meta
from lamina.install.terms import Since, When

_ADMISSION = "admissionregistration.k8s.io/v1"
_VALIDATES = Since(1, 30)
_KNOWS_NODES = Since(1, 32)
"""From then on an account's token says on which node its pod is."""
_NODE = "authentication.kubernetes.io/node-name"
_LABELS = "nvidia.com/"
"""All labels that agents write begin so."""


def policies() -> list[Any]:
    """Those that the cluster's version can hold."""
    return [
        *(When(_KNOWS_NODES, each) for each in _own_nodes_only()),
        *(When(_VALIDATES, each) for each in _grants_by_control_alone()),
    ]


def _own_nodes_only() -> list[Any]:
    """An agent writes of its node as that node's kubelet may, or less: no taints, and labels of its own alone."""
    other_labels = f"{_labels_kept('object', 'oldObject')} && {_labels_kept('oldObject', 'object')}"
    validations = {
        "an agent writes of its own node alone": f"'{_NODE}' in request.userInfo.extra && "
        f"object.metadata.name in request.userInfo.extra['{_NODE}']",
        "an agent changes nothing of a node's specification": "request.resource.resource != 'nodes' || "
        "object.spec == oldObject.spec",
        f"an agent changes no labels of a node but those below {_LABELS}": "request.resource.resource != 'nodes' || "
        f"({other_labels})",
    }
    rules = [_written("lamina.dev", "*", ["inventories"]), _written("", "v1", ["nodes", "nodes/status"])]
    return _policy(AGENT, AGENT, rules, validations, {"an-agent": _is(AGENT)})


def _labels_kept(these: str, those: str) -> str:
    """CEL: whether `those` have the labels of `these` that are not an agent's."""
    labels, other = f"{these}.metadata.labels", f"{those}.metadata.labels"
    kept = f"has({other}) && name in {other} && {other}[name] == {labels}[name]"
    return f"(!has({labels}) || {labels}.all(name, name.startsWith('{_LABELS}') || ({kept})))"


def _grants_by_control_alone() -> list[Any]:
    """Agents obey grants, so who could write one could give himself what others hold. Others may change metadata, as
    Kubernetes' garbage collector does."""
    expression = f"{_is(CONTROL)} || (request.operation == 'UPDATE' && object.spec == oldObject.spec)"
    rules = [_written("lamina.dev", "*", ["grants"])]
    return _policy(
        "lamina-grants", CONTROL, rules, {"grants are written by Lamina's control part alone": expression}, {}
    )


def _is(part: str) -> str:
    return f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{part}'"


def _policy(
    name: str, part: str, rules: list[Any], validations: dict[str, str], conditions: dict[str, str]
) -> list[Any]:
    """A policy and its binding; `validations` by what is told where they do not hold, `conditions` by name."""
    spec: dict[str, Any] = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}}
    if conditions:
        spec["matchConditions"] = [{"name": each, "expression": text} for each, text in conditions.items()]
    spec["validations"] = [{"expression": text, "message": told} for told, text in validations.items()]
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


def _written(group: str, version: str, resources: list[str]) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": "*",
    }
