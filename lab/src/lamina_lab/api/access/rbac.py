"""Who may do what, by roles and their bindings as Kubernetes evaluates them.

Rules only allow. The group system:masters may do everything, and everyone who is known may discover the API and ask
about themselves, as by Kubernetes' own roles.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.api.access.bootstrap_roles import bootstrap_roles
from lamina_lab.api.access.users import MASTERS, User
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import ApiError, not_found, qualified
from lamina_lab.kubernetes.selectors import matches

EVERYTHING: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
EVERY_PATH: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_PATHS = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version"]
_SELF = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"]
_OF_ALL: tuple[Object, ...] = (
    {"verbs": ["get"], "nonResourceURLs": _PATHS},
    {"verbs": ["create"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"], "resources": _SELF},
)
"""What the roles system:discovery, system:public-info-viewer and system:basic-user allow."""


class Attributes(Struct, frozen=True):
    """What is asked for. `path` is set for what is no resource; the other fields but the verb are empty then."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource, such as pods/log."""
    name: str = ""
    namespace: str = ""
    path: str = ""

    def refusal(self, user: User) -> ApiError:
        """What Kubernetes answers to a user who may not do it."""
        if self.path:
            message = f'forbidden: User "{user.name}" cannot {self.verb} path "{self.path}"'
            return ApiError(403, "Forbidden", message)
        plural = self.resource.partition("/")[0]
        what = f'{qualified(plural, self.group)} "{self.name}"' if self.name else qualified(plural, self.group)
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        message = (
            f'{what} is forbidden: User "{user.name}" cannot {self.verb} resource "{self.resource}" in API group '
            f'"{self.group}" {where}'
        )
        details = {"name": self.name, "group": self.group, "kind": plural}
        return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


class Roles:
    """The rules of users, by the roles and bindings in a store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def allow(self, user: User, asked: Attributes) -> bool:
        """Whether one of the user's rules allows it."""
        return any(allows(rule, asked) for rule in self.rules(user, asked.namespace))

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """All rules that hold for the user in the namespace; without one, those for the whole cluster."""
        if MASTERS in user.groups:
            yield from (EVERYTHING, EVERY_PATH)
        yield from _OF_ALL
        for binding in self._objects("ClusterRoleBinding"):
            yield from self._of_binding(binding, user, "")
        for binding in self._objects("RoleBinding", namespace) if namespace else ():
            yield from self._of_binding(binding, user, namespace)

    def _of_binding(self, binding: Object, user: User, namespace: str) -> Iterator[Object]:
        if not any(_is(subject, user, namespace) for subject in binding.get("subjects") or ()):
            return
        with suppress(ApiError):  # a role that does not exist allows nothing
            yield from self.referenced(binding["roleRef"], namespace)

    def referenced(self, reference: Object, namespace: str) -> list[Object]:
        """The rules of the role that a binding names. Raises 404 where there is none."""
        kind, name = reference["kind"], reference["name"]
        for role in self._objects(kind, namespace if kind == "Role" else ""):
            if role["metadata"]["name"] == name:
                return list(self._of_role(role))
        raise not_found(f"{kind.lower()}s", "rbac.authorization.k8s.io", name)

    def _of_role(self, role: Object) -> Iterator[Object]:
        """The rules of a role, with those of the roles that it aggregates."""
        yield from role.get("rules") or ()
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        for other in self._objects("ClusterRole") if selectors else ():
            if any(matches(selector, other["metadata"].get("labels") or {}) for selector in selectors):
                yield from other.get("rules") or ()

    def _objects(self, kind: str, namespace: str = "") -> Iterator[Object]:
        """Those in the store, before the cluster roles that every cluster has."""
        resource = self._catalog.named(f"{kind.lower()}s.rbac.authorization.k8s.io")
        yield from (version.obj for version in self._store.list(resource, namespace))
        if kind == "ClusterRole":
            yield from bootstrap_roles()


def allows(rule: Object, asked: Attributes) -> bool:
    """Whether the rule allows what is asked for."""
    if not _has(rule, "verbs", asked.verb):
        return False
    if asked.path:
        return any(_covers(url, asked.path) for url in rule.get("nonResourceURLs") or ())
    subresource = asked.resource.partition("/")[2]
    resources = rule.get("resources") or ()
    named = rule.get("resourceNames") or ()
    return (
        _has(rule, "apiGroups", asked.group)
        and ("*" in resources or asked.resource in resources or bool(subresource and f"*/{subresource}" in resources))
        and (not named or asked.name in named)
    )


def _has(rule: Object, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return "*" in values or value in values


def _covers(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith("*") else path == url


def _is(subject: Any, user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            of = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{of}:{subject['name']}"
    return False
