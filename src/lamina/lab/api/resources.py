"""Which resources the API serves: a fixed table, and those that CustomResourceDefinitions add while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lamina.lab.api.status import no_such_path

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version. Resources of the same `storage` show the same objects."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[dict[str, Any], ...] = ()
    custom: bool = False
    shares: str = ""

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        return self.shares or (f"{self.plural}.{self.group}" if self.group else self.plural)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


def _rows() -> Iterator[Resource]:
    status, scale = ("status",), ("status", "scale")
    pod = ("status", "log", "exec", "binding", "eviction")
    every = ("all",)
    for plural, kind, namespaced, short, subresources, categories in (
        ("configmaps", "ConfigMap", True, ("cm",), (), ()),
        ("events", "Event", True, ("ev",), (), ()),
        ("namespaces", "Namespace", False, ("ns",), ("status", "finalize"), ()),
        ("nodes", "Node", False, ("no",), status, ()),
        ("pods", "Pod", True, ("po",), pod, every),
        ("resourcequotas", "ResourceQuota", True, ("quota",), status, ()),
        ("secrets", "Secret", True, (), (), ()),
        ("serviceaccounts", "ServiceAccount", True, ("sa",), (), ()),
        ("services", "Service", True, ("svc",), status, every),
    ):
        yield Resource("", "v1", kind, plural, namespaced, short, subresources, categories)
    for plural, kind, short, subresources in (
        ("daemonsets", "DaemonSet", ("ds",), status),
        ("deployments", "Deployment", ("deploy",), scale),
        ("replicasets", "ReplicaSet", ("rs",), scale),
    ):
        yield Resource("apps", "v1", kind, plural, True, short, subresources, every)
    yield Resource("batch", "v1", "Job", "jobs", True, (), status, every)
    yield Resource("coordination.k8s.io", "v1", "Lease", "leases", True)
    yield Resource("events.k8s.io", "v1", "Event", "events", True, ("ev",), shares="events")
    yield Resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        ("crd", "crds"),
        status,
        ("api-extensions",),
    )
    for flavour in ("Mutating", "Validating"):
        plural = f"{flavour.lower()}webhookconfigurations"
        kind = f"{flavour}WebhookConfiguration"
        yield Resource("admissionregistration.k8s.io", "v1", kind, plural, False, (), (), ("api-extensions",))
    for suffix in ("Policy", "PolicyBinding"):
        kind = f"ValidatingAdmission{suffix}"
        plural = "validatingadmissionpolicies" if suffix == "Policy" else f"{kind.lower()}s"
        yield Resource("admissionregistration.k8s.io", "v1", kind, plural, False)
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        namespaced = not kind.startswith("Cluster")
        yield Resource("rbac.authorization.k8s.io", "v1", kind, f"{kind.lower()}s", namespaced)
    yield Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",), status)
    yield Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True, ("netpol",))
    yield Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))


class Catalogue:
    """All resources served at the moment. Reading is by group, version and plural, as URLs name them."""

    def __init__(self) -> None:
        self._served = {(each.group, each.version, each.plural): each for each in _rows()}

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def find(self, group: str, version: str, plural: str) -> Resource:
        found = self._served.get((group, version, plural))
        if found is None:
            raise no_such_path()
        return found

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next((each for each in self if each.kind == kind and each.api_version == api_version), None)

    def named(self, name: str) -> Resource:
        """By storage name: `pods`, `deployments.apps`, `grants.lamina.dev`."""
        for each in self:
            if each.storage == name and not each.shares:
                return each
        raise no_such_path()

    def versions(self) -> dict[str, list[str]]:
        """Groups (the core group is "") with their versions, in the order of the table."""
        groups: dict[str, list[str]] = {}
        for each in self:
            versions = groups.setdefault(each.group, [])
            if each.version not in versions:
                versions.append(each.version)
        return groups

    def within(self, group: str, version: str) -> list[Resource]:
        return [each for each in self if (each.group, each.version) == (group, version)]

    def define(self, crd: str, resources: list[Resource]) -> None:
        """Serve a custom resource's versions; `crd` is `<plural>.<group>`, and replaces what it served before."""
        self.withdraw(crd)
        for each in resources:
            self._served.setdefault((each.group, each.version, each.plural), each)

    def withdraw(self, crd: str) -> None:
        for key in [key for key, each in self._served.items() if each.custom and each.storage == crd]:
            del self._served[key]
