"""Each part's account, and the roles that give it its rights."""

from collections.abc import Iterable
from typing import Any

from lamina.install import rights
from lamina.install.names import AGENT, CONTROL, NAMESPACE, SCHEDULER, cluster_meta, labels, meta
from lamina.install.rights import Rule
from lamina.install.terms import Given, Since, Term, Value, When

_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io"
_LENT = (("system:kube-scheduler", SCHEDULER), ("system:volume-scheduler", f"{SCHEDULER}-volumes"))
"""Kubernetes' own roles of a scheduler, which follow its version, and our bindings to them."""
_READS_AUTHENTICATION = "extension-apiserver-authentication-reader"

_KNOWS_NODES = Since(1, 32)
"""From then on an account's token says on which node its pod is."""
_NODE = "authentication.kubernetes.io/node-name"

SCHEDULER_WANTED = Given(Value("scheduler.enabled"))


def accounts() -> list[Any]:
    """All accounts, roles and bindings."""
    nvidia = Value("agent.nvidiaNamespace")
    of_nvidia = [
        _role(f"{AGENT}-nvidia", AGENT, rights.AGENT_OF_NVIDIA, nvidia),
        _bound(f"{AGENT}-nvidia", AGENT, "Role", f"{AGENT}-nvidia", nvidia),
    ]
    return [
        _account(CONTROL),
        _account(AGENT),
        *_cluster_role(CONTROL, rights.CONTROL_CLUSTER),
        *_cluster_role(AGENT, rights.AGENT_CLUSTER),
        _role(CONTROL, CONTROL, rights.CONTROL_OWN),
        _bound(CONTROL, CONTROL, "Role", CONTROL),
        _role(AGENT, AGENT, rights.AGENT_OWN),
        _bound(AGENT, AGENT, "Role", AGENT),
        *(When(Given(nvidia), each) for each in of_nvidia),
        *(When(_KNOWS_NODES, each) for each in _own_nodes_only()),
        *(When(SCHEDULER_WANTED, each) for each in _of_scheduler()),
    ]


def _of_scheduler() -> list[Any]:
    reads = _bound(f"{SCHEDULER}-authentication", SCHEDULER, "Role", _READS_AUTHENTICATION, "kube-system")
    return [
        _account(SCHEDULER),
        *(_bound_everywhere(name, SCHEDULER, role) for role, name in _LENT),
        reads,
        _role(SCHEDULER, SCHEDULER, rights.SCHEDULER_OWN),
        _bound(SCHEDULER, SCHEDULER, "Role", SCHEDULER),
    ]


def _own_nodes_only() -> list[Any]:
    """All agents share one account. This has each write of its own node alone, which roles cannot say."""
    extra = f"request.userInfo.extra['{_NODE}']"
    rules = [
        _written("lamina.dev", "*", ["inventories"]),
        _written("", "v1", ["nodes", "nodes/status"]),
    ]
    policy = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": cluster_meta(AGENT, AGENT),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [
                {
                    "name": "an-agent",
                    "expression": f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{AGENT}'",
                }
            ],
            "validations": [
                {
                    "expression": f"'{_NODE}' in request.userInfo.extra && object.metadata.name in {extra}",
                    "message": "an agent writes of its own node alone",
                }
            ],
        },
    }
    binding = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": cluster_meta(AGENT, AGENT),
        "spec": {"policyName": AGENT, "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _written(group: str, version: str, resources: list[str]) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": "*",
    }


def _account(part: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(part, part)}


def _rules(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    return [rule.policy() for rule in rules]


def _cluster_role(part: str, rules: Iterable[Rule]) -> list[dict[str, Any]]:
    head = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": cluster_meta(part, part)}
    return [head | {"rules": _rules(rules)}, _bound_everywhere(part, part, part)]


def _role(name: str, part: str, rules: Iterable[Rule], namespace: str | Term = NAMESPACE) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels(part)}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": _rules(rules)}


def _bound(name: str, part: str, kind: str, role: str, namespace: str | Term = NAMESPACE) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": labels(part)},
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [_subject(part)],
    }


def _bound_everywhere(name: str, part: str, role: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": cluster_meta(name, part),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(part)],
    }


def _subject(part: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": part, "namespace": NAMESPACE}
