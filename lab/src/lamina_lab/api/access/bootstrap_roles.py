"""The cluster roles that every cluster has for people: cluster-admin, admin, edit and view.

They are as far as the lab's resources go. `view` and `edit` have the rules of roles with the labels for them too.
"""

from collections.abc import Iterator

from lamina.ports.kube import Object

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_OF_PEOPLE = (
    ("", ["configmaps", "events", "namespaces", "pods", "pods/log", "pods/status", "resourcequotas", "services"]),
    ("", ["limitranges", "serviceaccounts"]),
    ("apps", ["controllerrevisions", "daemonsets", "deployments", "deployments/scale"]),
    ("apps", ["replicasets", "replicasets/scale", "statefulsets", "statefulsets/scale"]),
    ("batch", ["cronjobs", "jobs"]),
    ("networking.k8s.io", ["networkpolicies"]),
    ("policy", ["poddisruptionbudgets"]),
    ("resource.k8s.io", ["resourceclaims", "resourceclaimtemplates"]),
)
_READ_ONLY = ("controllerrevisions", "events", "limitranges", "namespaces", "pods/log", "pods/status", "resourcequotas")


def bootstrap_roles() -> Iterator[Object]:
    """The ClusterRole objects."""
    view = [{"verbs": _READ, "apiGroups": [group], "resources": resources} for group, resources in _OF_PEOPLE]
    edit = [
        *view,
        *(
            {
                "verbs": _WRITE,
                "apiGroups": [group],
                "resources": [each for each in resources if each not in _READ_ONLY],
            }
            for group, resources in _OF_PEOPLE
        ),
        {"verbs": [*_READ, *_WRITE], "apiGroups": [""], "resources": ["secrets"]},
        {"verbs": ["create", "get"], "apiGroups": [""], "resources": ["pods/exec", "pods/eviction"]},
        {"verbs": ["create", "impersonate"], "apiGroups": [""], "resources": ["serviceaccounts/token"]},
    ]
    roles = {"verbs": [*_READ, *_WRITE], "apiGroups": ["rbac.authorization.k8s.io"]}
    admin = [*edit, {**roles, "resources": ["roles", "rolebindings"]}]
    yield _role("view", view, "view")
    yield _role("edit", edit, "edit", "view")
    yield _role("admin", admin, "admin", "edit", "view")
    everything: list[Object] = [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]
    yield _role("cluster-admin", everything)


def _role(name: str, rules: list[Object], *aggregated: str) -> Object:
    """`aggregated` are the labels whose roles it has the rules of."""
    role: Object = {"metadata": {"name": name}, "rules": rules}
    if aggregated:
        labels = [{"matchLabels": {f"rbac.authorization.k8s.io/aggregate-to-{each}": "true"}} for each in aggregated]
        role["aggregationRule"] = {"clusterRoleSelectors": labels}
    return role
