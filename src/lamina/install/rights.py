"""The least permissions of each component. docs/reference/rbac.md is generated from them.

The `_CLUSTER` rules apply to the whole cluster, the others to a namespace.
"""

from typing import Any

from msgspec import Struct

from lamina.configuration import CONFIG_MAP
from lamina.core.component_names import (
    ADMISSION_SECRET,
    EXTENDER_CLIENT_SECRET,
    EXTENDER_SECRET,
    LEADER_LEASE,
    TURNS_LEASE,
    WEBHOOKS,
)
from lamina.core.definitions import custom_resource_definitions

MIG_CONFIGURATIONS = "mig-parted-config"
SCHEDULER_LEASE = "lamina-scheduler"
_OPERATOR_KIND = "clusterpolicies.nvidia.com"


class Rule(Struct, frozen=True):
    """`resource` is plural.group, as in `kubectl api-resources`. Without `names` it applies to
    all names. `why` is its reason, for the documentation."""

    resource: str
    verbs: str
    names: tuple[str, ...] = ()
    why: str = ""

    def policy(self) -> dict[str, Any]:
        """The rule as a Role contains it."""
        plural, _, group = self.resource.partition(".")
        subresource = ""
        if "/" in group:
            group, _, subresource = group.partition("/")
        resource = f"{plural}/{subresource}" if subresource else plural
        policy: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": self.verbs.split()}
        return policy | ({"resourceNames": list(self.names)} if self.names else {})


def _definitions() -> tuple[str, ...]:
    return tuple(crd["metadata"]["name"] for crd in custom_resource_definitions())


CONTROLLER_CLUSTER = (
    Rule(
        "pods",
        "get list watch patch",
        why="the patch writes HAMi's annotations on bound pods, the leader's label, a new try of waiting pods, and a "
        "resize",
    ),
    Rule("pods/binding", "create"),
    Rule("pods/eviction", "create", why="of pods that have tickets without a grant, after `grantlessPods.seconds`"),
    Rule("grants.lamina.dev", "get list watch create update delete", why="the update resizes a running pod"),
    Rule("inventories.lamina.dev", "list watch"),
    Rule("inventories.lamina.dev/status", "patch", why="what is free on each node"),
    Rule("nodes", "list watch", why="their CPU and memory, and labels that exclude them"),
    Rule("resourcequotas", "list watch"),
    Rule("resourcequotas/status", "patch", why="of quotas that limit GPUs"),
    Rule("podgroups.scheduling.k8s.io", "get", why="of pods that belong to one"),
    Rule("podgroups.scheduling.x-k8s.io", "get", why="of pods that belong to one"),
    Rule("podgroups.scheduling.volcano.sh", "get", why="of pods that belong to one"),
    Rule("poddisruptionbudgets.policy", "list", why="for preemption"),
    Rule("events", "get create patch"),
    Rule("mutatingwebhookconfigurations.admissionregistration.k8s.io", "create"),
    Rule("mutatingwebhookconfigurations.admissionregistration.k8s.io", "get update delete", (WEBHOOKS,)),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "create"),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "get update", _definitions()),
)
CONTROLLER_OWN = (
    Rule("configmaps", "get list watch patch", (CONFIG_MAP,), "the patch records the text in force in an annotation"),
    Rule("secrets", "create"),
    Rule("secrets", "get update", (ADMISSION_SECRET, EXTENDER_SECRET, EXTENDER_CLIENT_SECRET), "its certificates"),
    Rule(
        "leases.coordination.k8s.io", "get create update", why=f"`{LEADER_LEASE}`, `{TURNS_LEASE}` and `lamina-defrag`"
    ),
)
AGENT_CLUSTER = (
    Rule("pods", "get list watch", why="the list and the watch are of its own node"),
    Rule("grants.lamina.dev", "get"),
    Rule("inventories.lamina.dev", "get list watch create update", why="of its own node"),
    Rule("nodes", "get list watch patch", why="its own; compatibility labels and annotations"),
    Rule("nodes/status", "patch", why="its own; amounts"),
    Rule("events", "get create patch"),
    Rule("customresourcedefinitions.apiextensions.k8s.io", "list watch", (_OPERATOR_KIND,)),
    Rule(_OPERATOR_KIND, "list watch"),
)
AGENT_OWN = (
    Rule("configmaps", "get list watch", (CONFIG_MAP,)),
    Rule("configmaps", "get", (MIG_CONFIGURATIONS,), "where a label asks for MIG"),
)
AGENT_OF_NVIDIA = (Rule("configmaps", "get list watch"),)
"""In the namespace of NVIDIA's operator."""
SCHEDULER_OWN = (
    Rule("leases.coordination.k8s.io", "create"),
    Rule("leases.coordination.k8s.io", "get update", (SCHEDULER_LEASE,)),
)
"""In addition to the roles of Kubernetes' own scheduler."""

DEFRAGMENTATION_CLUSTER = (
    Rule("nodes", "get patch", why="with `controller.defragmentation`, the cordon of a GPU while its pods move"),
    Rule("inventories.lamina.dev", "get", why="with `controller.defragmentation`, whether the agent knows the cordon"),
    Rule("pods/eviction", "create", why="with `controller.defragmentation`"),
)
"""Of the controller, only where it may move pods."""

IDLE_SHARES_CLUSTER = (
    Rule("pods/eviction", "create", why="with `controller.idleShares`"),
    Rule("deployments.apps", "get patch", why="with `controller.idleShares`, replicas of idle workloads"),
    Rule("statefulsets.apps", "get patch", why="with `controller.idleShares`, replicas of idle workloads"),
)
"""Of the controller, only where it may reclaim idle shares."""

BORROWERS_CLUSTER = (Rule("pods/eviction", "create", why="with `controller.borrowers`"),)
"""Of the controller, only where it may evict borrowers."""

PREEMPTION_CLUSTER = (
    Rule("pods/eviction", "create", why="with `controller.preemption`"),
    Rule("pods/status", "patch", why="with `controller.preemption`, the node that a pod is nominated for"),
)
"""Of the controller, only where it may evict pods for others."""

CLAIMS_CLUSTER = (
    Rule(
        "resourceslices.resource.k8s.io", "list watch create update delete", why="with `dra.enabled`, of its own node"
    ),
    Rule("resourceclaims.resource.k8s.io", "get", why="with `dra.enabled`, claims of pods on its node"),
    Rule("resourcequotas", "list", why="with `dra.enabled`, quotas on GPUs of the namespaces of claims"),
)
"""Of agents, only where they serve ResourceClaims."""

BINDING_CLUSTER = (
    Rule("resourceclaims.resource.k8s.io", "list watch", why="with `dra.bindingConditions`, which are allocated"),
    Rule("resourceclaims.resource.k8s.io/status", "patch", why="with `dra.bindingConditions`, the devices of claims"),
    Rule(
        "resourceclaims.resource.k8s.io/driver",
        "associated-node:patch",
        why="with `dra.bindingConditions`, what Kubernetes 1.36 checks of such a patch: only devices of its own node",
    ),
)
"""Of agents, only where they prepare claims before pods are bound."""

CLAIM_OBJECTS_CLUSTER = (
    Rule(
        "resourceclaims.resource.k8s.io", "get list watch", why="with `dra.enabled`, which GPUs are allocated to claims"
    ),
    Rule(
        "deviceclasses.resource.k8s.io",
        "list watch create",
        why="with `dra.enabled`, which select GPUs, and those that the cluster lacks",
    ),
    Rule(
        "pods/eviction",
        "create",
        why="with `dra.enabled`, pods that cannot start on their node for their claims",
    ),
    Rule(
        "resourceclaimtemplates.resource.k8s.io",
        "get list create delete",
        why="with `dra.enabled`, for pods that are served by claims in the place of resources",
    ),
)
"""Of the controller, only where agents serve ResourceClaims."""

METRICS_CLUSTER = (
    Rule("tokenreviews.authentication.k8s.io", "create", why="with `metrics.protected`, who reads metrics"),
    Rule("subjectaccessreviews.authorization.k8s.io", "create", why="with `metrics.protected`, whether it may"),
)
"""Of the controller and the agents, only where metrics are protected."""

DASHBOARD_CLUSTER = (
    Rule("pods", "list watch"),
    Rule("grants.lamina.dev", "list watch"),
    Rule("inventories.lamina.dev", "list watch"),
    Rule("resourcequotas", "list watch"),
    Rule("nodes", "list watch"),
    Rule("events", "list watch", why="when pods were refused GPU memory, or why claims cannot be prepared"),
    *(
        Rule(resource, "list", why="what pods with ResourceClaims wait for; left out without it")
        for resource in (
            "resourceclaims.resource.k8s.io",
            "resourceclaimtemplates.resource.k8s.io",
            "deviceclasses.resource.k8s.io",
            "resourceslices.resource.k8s.io",
            "devicetaintrules.resource.k8s.io",
        )
    ),
    *(
        Rule(resource, "list", why="whose pods are refused; left out without it")
        for resource in (
            "deployments.apps",
            "replicasets.apps",
            "statefulsets.apps",
            "daemonsets.apps",
            "jobs.batch",
        )
    ),
    Rule("tokenreviews.authentication.k8s.io", "create", why="who looks"),
    Rule("subjectaccessreviews.authorization.k8s.io", "create", why="what a viewer may list"),
)
DASHBOARD_OWN = (Rule("configmaps", "list watch", (CONFIG_MAP,)),)
"""Of the dashboard, only with `dashboard.enabled`."""

MAKES_ITS_NAMESPACE = Rule(
    "namespaces", "create", why="only where Lamina's namespace is missing; the installation makes it"
)
"""A right of the controller that an installation does not give."""

OF_COMPONENTS: dict[str, tuple[Rule, ...]] = {
    "Controller, in the cluster": (*CONTROLLER_CLUSTER, MAKES_ITS_NAMESPACE),
    "Controller, in the cluster, with `controller.defragmentation`": DEFRAGMENTATION_CLUSTER,
    "Controller, in the cluster, with `controller.idleShares`": IDLE_SHARES_CLUSTER,
    "Controller, in the cluster, with `controller.borrowers`": BORROWERS_CLUSTER,
    "Controller, in the cluster, with `controller.preemption`": PREEMPTION_CLUSTER,
    "Controller, in the cluster, with `dra.enabled`": CLAIM_OBJECTS_CLUSTER,
    "Controller, in its namespace": CONTROLLER_OWN,
    "Agent, in the cluster": AGENT_CLUSTER,
    "Agent, in the cluster, with `dra.enabled`": CLAIMS_CLUSTER,
    "Agent, in the cluster, with `dra.bindingConditions`": BINDING_CLUSTER,
    "Agent, in its namespace": AGENT_OWN,
    "Agent, in the namespace of NVIDIA's operator": AGENT_OF_NVIDIA,
    "Controller and agent, with `metrics.protected`": METRICS_CLUSTER,
    "Scheduler, in its namespace": SCHEDULER_OWN,
    "Dashboard, in the cluster, with `dashboard.enabled`": DASHBOARD_CLUSTER,
    "Dashboard, in its namespace, with `dashboard.enabled`": DASHBOARD_OWN,
}
"""All of it, by where it holds."""
