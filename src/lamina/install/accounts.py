"""The service account of each component, and its roles."""

from collections.abc import Iterable
from typing import Any

from lamina.core.component_names import NAMESPACE
from lamina.install import rights
from lamina.install.agent import BINDING_WANTED, DRA_WANTED, MPS_WANTED
from lamina.install.controller import PREEMPTS
from lamina.install.dashboard import DASHBOARD_WANTED
from lamina.install.names import AGENT, CONTROLLER, DASHBOARD, MPS, SCHEDULER, cluster_meta, labels, meta
from lamina.install.pods import PROTECTED_METRICS
from lamina.install.rights import Rule
from lamina.install.rights_of_commands import VIEW
from lamina.install.terms import Given, Term, Value, When

_RBAC = "rbac.authorization.k8s.io"
_SCHEDULER_ROLES = (("system:kube-scheduler", SCHEDULER), ("system:volume-scheduler", f"{SCHEDULER}-volumes"))
"""Kubernetes' own roles of a scheduler, which follow its version, and the bindings to them."""
_READS_AUTHENTICATION = "extension-apiserver-authentication-reader"

VIEWER = "lamina-view"
_INTO_VIEW = "rbac.authorization.k8s.io/aggregate-to-view"
_CHECKS_CALLERS = "lamina-metrics"

_MOVER = "lamina-defragmentation"
_PREEMPTOR = "lamina-preemption"
_RECLAIMER = "lamina-idle-shares"
_BORROWERS = "lamina-borrowers"
_SERVES_CLAIMS = "lamina-claims"
_BINDS_CLAIMS = "lamina-claims-binding"
_MAKES_CLAIM_OBJECTS = "lamina-claim-objects"

MOVES_PODS = Given(Value("controller.defragmentation"))
RECLAIMS_IDLE = Given(Value("controller.idleShares"))
EVICTS_BORROWERS = Given(Value("controller.borrowers"))
SCHEDULER_WANTED = Given(Value("scheduler.enabled"))


def accounts() -> list[Any]:
    """All service accounts, roles and bindings."""
    nvidia = Value("agent.nvidiaNamespace")
    nvidia_objects = [
        _role(f"{AGENT}-nvidia", AGENT, rights.AGENT_OF_NVIDIA, nvidia),
        _role_binding(f"{AGENT}-nvidia", AGENT, "Role", f"{AGENT}-nvidia", nvidia),
    ]
    return [
        _service_account(CONTROLLER),
        _service_account(AGENT),
        When(MPS_WANTED, _service_account(MPS)),
        *_cluster_role(CONTROLLER, rights.CONTROLLER_CLUSTER),
        *_cluster_role(AGENT, rights.AGENT_CLUSTER),
        _role(CONTROLLER, CONTROLLER, rights.CONTROLLER_OWN),
        _role_binding(CONTROLLER, CONTROLLER, "Role", CONTROLLER),
        _role(AGENT, AGENT, rights.AGENT_OWN),
        _role_binding(AGENT, AGENT, "Role", AGENT),
        *(When(Given(nvidia), part) for part in nvidia_objects),
        *(When(MOVES_PODS, part) for part in _added_role(_MOVER, rights.DEFRAGMENTATION_CLUSTER)),
        *(When(RECLAIMS_IDLE, part) for part in _added_role(_RECLAIMER, rights.IDLE_SHARES_CLUSTER)),
        *(When(EVICTS_BORROWERS, part) for part in _added_role(_BORROWERS, rights.BORROWERS_CLUSTER)),
        *(When(PREEMPTS, part) for part in _added_role(_PREEMPTOR, rights.PREEMPTION_CLUSTER)),
        *(When(DRA_WANTED, part) for part in _added_role(_SERVES_CLAIMS, rights.CLAIMS_CLUSTER, AGENT)),
        *(When(DRA_WANTED, part) for part in _added_role(_MAKES_CLAIM_OBJECTS, rights.CLAIM_OBJECTS_CLUSTER)),
        *(When(BINDING_WANTED, part) for part in _added_role(_BINDS_CLAIMS, rights.BINDING_CLUSTER, AGENT)),
        *(When(SCHEDULER_WANTED, part) for part in _scheduler_objects()),
        *(When(PROTECTED_METRICS, part) for part in _metrics_objects()),
        _viewer(),
        *(When(DASHBOARD_WANTED, part) for part in _dashboard_objects()),
    ]


def _viewer() -> dict[str, Any]:
    """What people need for the commands that only read. Who has the role `view` in the whole cluster has it too."""
    metadata = cluster_meta(VIEWER)
    metadata["labels"] = metadata["labels"] | {_INTO_VIEW: "true"}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": _rules(VIEW)}


def _scheduler_objects() -> list[Any]:
    reads = _role_binding(f"{SCHEDULER}-authentication", SCHEDULER, "Role", _READS_AUTHENTICATION, "kube-system")
    return [
        _service_account(SCHEDULER),
        *(_cluster_role_binding(name, SCHEDULER, role) for role, name in _SCHEDULER_ROLES),
        reads,
        _role(SCHEDULER, SCHEDULER, rights.SCHEDULER_OWN),
        _role_binding(SCHEDULER, SCHEDULER, "Role", SCHEDULER),
    ]


def _added_role(name: str, rules: Iterable[Rule], part: str = CONTROLLER) -> list[Any]:
    """Further rights of the controller, or of another part."""
    head = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": cluster_meta(name, part)}
    return [head | {"rules": _rules(rules)}, _cluster_role_binding(name, part, name)]


def _metrics_objects() -> list[Any]:
    """The rights to check who reads metrics, and a role for those who may."""
    checks = cluster_meta(_CHECKS_CALLERS)
    reads = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    head = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole"}
    return [
        head | {"metadata": checks, "rules": _rules(rights.METRICS_CLUSTER)},
        *(_cluster_role_binding(f"{part}-metrics", part, _CHECKS_CALLERS) for part in (CONTROLLER, AGENT)),
        head | {"metadata": cluster_meta("lamina-metrics-reader"), "rules": reads},
    ]


def _dashboard_objects() -> list[Any]:
    """The rights of the dashboard, and a role for viewers who may see nodes too."""
    sees = [Rule("inventories.lamina.dev", "list").policy()]
    head = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": cluster_meta("lamina-dashboard-viewer")}
    return [
        _service_account(DASHBOARD),
        *_cluster_role(DASHBOARD, rights.DASHBOARD_CLUSTER),
        _role(DASHBOARD, DASHBOARD, rights.DASHBOARD_OWN),
        _role_binding(DASHBOARD, DASHBOARD, "Role", DASHBOARD),
        head | {"rules": sees},
    ]


def _service_account(part: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(part, part)}


def _rules(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    return [rule.policy() for rule in rules]


def _cluster_role(part: str, rules: Iterable[Rule]) -> list[dict[str, Any]]:
    head = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": cluster_meta(part, part)}
    return [head | {"rules": _rules(rules)}, _cluster_role_binding(part, part, part)]


def _role(name: str, part: str, rules: Iterable[Rule], namespace: str | Term = NAMESPACE) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels(part)}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": _rules(rules)}


def _role_binding(name: str, part: str, kind: str, role: str, namespace: str | Term = NAMESPACE) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": labels(part)},
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [_subject(part)],
    }


def _cluster_role_binding(name: str, part: str, role: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": cluster_meta(name, part),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(part)],
    }


def _subject(part: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": part, "namespace": NAMESPACE}
