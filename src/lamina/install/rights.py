"""The least rights that each part works with. docs/cluster.md has them as a table, which a test compares.

Rules without a namespace hold in the whole cluster, the others in Lamina's own. What each is for stands in the table.
"""

from typing import Any

from msgspec import Struct

from lamina.control import crds
from lamina.control.certificate_store import NAME as CERTIFICATE
from lamina.control.leadership import NAME as LEADERSHIP
from lamina.control.webhook_configuration import NAME as WEBHOOKS
from lamina.dialects.config import CONFIG_MAP

MIG_CONFIGURATIONS = "mig-parted-config"
SCHEDULER_LEASE = "lamina-scheduler"
_OPERATOR_KIND = "clusterpolicies.nvidia.com"


class Rule(Struct, frozen=True):
    """`resource` is plural.group, as in the table; no `names` are all names."""

    resource: str
    verbs: str
    names: tuple[str, ...] = ()

    def policy(self) -> dict[str, Any]:
        """As a role has it."""
        plural, _, group = self.resource.partition(".")
        subresource = ""
        if "/" in group:
            group, _, subresource = group.partition("/")
        resource = f"{plural}/{subresource}" if subresource else plural
        policy: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": self.verbs.split()}
        return policy | ({"resourceNames": list(self.names)} if self.names else {})


def _definitions() -> tuple[str, ...]:
    return tuple(each["metadata"]["name"] for each in crds.definitions())


CONTROL_CLUSTER = (
    Rule("pods", "get list watch patch"),
    Rule("pods/binding", "create"),
    Rule("grants.lamina.dev", "get list watch create delete"),
    Rule("inventories.lamina.dev", "list watch"),
    Rule("nodes", "list watch"),
    Rule("resourcequotas", "list watch"),
    Rule("resourcequotas/status", "patch"),
    Rule("podgroups.scheduling.x-k8s.io", "get"),
    Rule("podgroups.scheduling.volcano.sh", "get"),
    Rule("poddisruptionbudgets.policy", "list"),
    Rule("events", "get create patch"),
    Rule("mutatingwebhookconfigurations.admissionregistration.k8s.io", "create"),
    Rule("mutatingwebhookconfigurations.admissionregistration.k8s.io", "get update delete", (WEBHOOKS,)),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "create"),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "get update", _definitions()),
)
CONTROL_OWN = (
    Rule("configmaps", "get list watch", (CONFIG_MAP,)),
    Rule("secrets", "create"),
    Rule("secrets", "get update", (CERTIFICATE,)),
    Rule("leases.coordination.k8s.io", "get create update"),
)
AGENT_CLUSTER = (
    Rule("pods", "get list"),
    Rule("grants.lamina.dev", "get"),
    Rule("inventories.lamina.dev", "get list watch create update"),
    Rule("nodes", "get list watch patch"),
    Rule("nodes/status", "patch"),
    Rule("events", "get create patch"),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "list watch", (_OPERATOR_KIND,)),
    Rule(_OPERATOR_KIND, "list watch"),
)
AGENT_OWN = (
    Rule("configmaps", "get list watch", (CONFIG_MAP,)),
    Rule("configmaps", "get", (MIG_CONFIGURATIONS,)),
)
AGENT_OF_NVIDIA = (Rule("configmaps", "get list watch"),)
"""In the namespace of NVIDIA's operator."""
SCHEDULER_OWN = (
    Rule("leases.coordination.k8s.io", "create"),
    Rule("leases.coordination.k8s.io", "get update", (SCHEDULER_LEASE,)),
)
"""Beside what Kubernetes gives its own scheduler."""

LEASES_OF_NODES, LEASE_OF_LEADER = "node-", LEADERSHIP
