"""The resources that the API serves: a fixed table, and those of CustomResourceDefinitions."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lamina_lab.kubernetes.errors import no_such_path

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class ApiResource(Struct, frozen=True):
    """One resource in one version. Resources with the same `storage` show the same objects."""

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
    schema: dict[str, Any] = {}
    """What its objects contain, as its CustomResourceDefinition says."""
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


def _rows() -> Iterator[ApiResource]:
    status, scale = ("status",), ("status", "scale")
    pod = ("status", "log", "exec", "binding", "eviction", "ephemeralcontainers")
    every = ("all",)
    for plural, kind, namespaced, short, subresources, categories in (
        ("configmaps", "ConfigMap", True, ("cm",), (), ()),
        ("events", "Event", True, ("ev",), (), ()),
        ("limitranges", "LimitRange", True, ("limits",), (), ()),
        ("namespaces", "Namespace", False, ("ns",), ("status", "finalize"), ()),
        ("nodes", "Node", False, ("no",), status, ()),
        ("pods", "Pod", True, ("po",), pod, every),
        ("resourcequotas", "ResourceQuota", True, ("quota",), status, ()),
        ("secrets", "Secret", True, (), (), ()),
        ("serviceaccounts", "ServiceAccount", True, ("sa",), ("token",), ()),
        ("services", "Service", True, ("svc",), status, every),
    ):
        yield ApiResource("", "v1", kind, plural, namespaced, short, subresources, categories)
    for plural, kind, short, subresources in (
        ("daemonsets", "DaemonSet", ("ds",), status),
        ("deployments", "Deployment", ("deploy",), scale),
        ("replicasets", "ReplicaSet", ("rs",), scale),
        ("statefulsets", "StatefulSet", ("sts",), scale),
    ):
        yield ApiResource("apps", "v1", kind, plural, True, short, subresources, every)
    yield ApiResource("apps", "v1", "ControllerRevision", "controllerrevisions", True)
    yield ApiResource("batch", "v1", "CronJob", "cronjobs", True, ("cj",), status, every)
    yield ApiResource("batch", "v1", "Job", "jobs", True, (), status, every)
    yield ApiResource("coordination.k8s.io", "v1", "Lease", "leases", True)
    yield ApiResource("events.k8s.io", "v1", "Event", "events", True, ("ev",), shares="events")
    yield ApiResource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        ("crd", "crds"),
        status,
        ("api-extensions",),
    )
    for webhook_type in ("Mutating", "Validating"):
        plural = f"{webhook_type.lower()}webhookconfigurations"
        kind = f"{webhook_type}WebhookConfiguration"
        yield ApiResource("admissionregistration.k8s.io", "v1", kind, plural, False, (), (), ("api-extensions",))
    for suffix in ("Policy", "PolicyBinding"):
        kind = f"ValidatingAdmission{suffix}"
        plural = "validatingadmissionpolicies" if suffix == "Policy" else f"{kind.lower()}s"
        yield ApiResource("admissionregistration.k8s.io", "v1", kind, plural, False)
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        namespaced = not kind.startswith("Cluster")
        yield ApiResource("rbac.authorization.k8s.io", "v1", kind, f"{kind.lower()}s", namespaced)
    yield ApiResource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",), status)
    yield ApiResource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True, ("netpol",))
    for kind, namespaced, subresources in (
        ("DeviceClass", False, ()),
        ("ResourceClaim", True, status),
        ("ResourceClaimTemplate", True, ()),
        ("ResourceSlice", False, ()),
    ):
        plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
        yield ApiResource("resource.k8s.io", "v1", kind, plural, namespaced, (), subresources)
    yield ApiResource("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules", False, (), status)
    yield ApiResource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))


class Catalog:
    """All resources served now. They are addressed by group, version and plural, as in URLs."""

    def __init__(self) -> None:
        self._served = {(row.group, row.version, row.plural): row for row in _rows()}

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._served.values())

    def find(self, group: str, version: str, plural: str) -> ApiResource:
        found = self._served.get((group, version, plural))
        if found is None:
            raise no_such_path()
        return found

    def of_kind(self, api_version: str, kind: str) -> ApiResource | None:
        return next(
            (resource for resource in self if resource.kind == kind and resource.api_version == api_version), None
        )

    def named(self, name: str) -> ApiResource:
        """By storage name: `pods`, `deployments.apps`, `grants.lamina.dev`."""
        for resource in self:
            if resource.storage == name and not resource.shares:
                return resource
        raise no_such_path()

    def versions(self) -> dict[str, list[str]]:
        """Groups (the core group is "") with their versions, in the order of the table."""
        groups: dict[str, list[str]] = {}
        for resource in self:
            versions = groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return groups

    def within(self, group: str, version: str) -> list[ApiResource]:
        return [resource for resource in self if (resource.group, resource.version) == (group, version)]

    def define(self, crd: str, resources: list[ApiResource]) -> None:
        """Serve a custom resource's versions. `crd` is `<plural>.<group>`; its earlier versions are replaced."""
        self.withdraw(crd)
        for resource in resources:
            self._served.setdefault((resource.group, resource.version, resource.plural), resource)

    def withdraw(self, crd: str) -> None:
        for key in [key for key, resource in self._served.items() if resource.custom and resource.storage == crd]:
            del self._served[key]
