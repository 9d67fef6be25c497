"""The least permissions of each component, as the roles of the chart give them. docs/reference/rbac.md is made of them.

In the chart, a rule is one line, and the comment above it says why it is needed.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct

from lamina.install.chart import chart

_KIND = re.compile(r"^kind: (ClusterRole|Role)$", re.MULTILINE)
_NAME = re.compile(r"^(?:metadata: \{|  )name: ([a-z-]+)", re.MULTILINE)


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


def _roles() -> dict[tuple[str, str], tuple[Rule, ...]]:
    """The rules by kind and name of each role of the chart, whether or not the values give it."""
    documents = (
        document
        for path, text in chart().items()
        if path.startswith("templates/")
        for document in text.split("\n---\n")
    )
    return {
        (kind[1], name[1]): tuple(_rules(document.partition("\nrules:\n")[2]))
        for document in documents
        if (kind := _KIND.search(document)) and (name := _NAME.search(document))
    }


def _rules(text: str) -> Iterator[Rule]:
    why: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("# "):
            why.append(line.removeprefix("# "))
        elif line.startswith("- {apiGroups"):
            yield _rule(yaml.safe_load(line)[0], " ".join(why))
            why = []


def _rule(policy: dict[str, Any], why: str) -> Rule:
    (group,), (resource,) = policy["apiGroups"], policy["resources"]
    plural, slash, subresource = resource.partition("/")
    name = f"{plural}.{group}{slash}{subresource}" if group else resource
    return Rule(name, " ".join(policy["verbs"]), tuple(policy.get("resourceNames", ())), why)


_ROLES = _roles()
CONTROLLER_CLUSTER = _ROLES["ClusterRole", "lamina-controller"]
CONTROLLER_OWN = _ROLES["Role", "lamina-controller"]
DEFRAGMENTATION_CLUSTER = _ROLES["ClusterRole", "lamina-defragmentation"]
IDLE_SHARES_CLUSTER = _ROLES["ClusterRole", "lamina-idle-shares"]
BORROWERS_CLUSTER = _ROLES["ClusterRole", "lamina-borrowers"]
PREEMPTION_CLUSTER = _ROLES["ClusterRole", "lamina-preemption"]
CLAIM_OBJECTS_CLUSTER = _ROLES["ClusterRole", "lamina-claim-objects"]
AGENT_CLUSTER = _ROLES["ClusterRole", "lamina-agent"]
AGENT_OWN = _ROLES["Role", "lamina-agent"]
AGENT_OF_NVIDIA = _ROLES["Role", "lamina-agent-nvidia"]
CLAIMS_CLUSTER = _ROLES["ClusterRole", "lamina-claims"]
BINDING_CLUSTER = _ROLES["ClusterRole", "lamina-claims-binding"]
METRICS_CLUSTER = _ROLES["ClusterRole", "lamina-metrics"]
SCHEDULER_OWN = _ROLES["Role", "lamina-scheduler"]
"""In addition to the roles of Kubernetes' own scheduler."""
DASHBOARD_CLUSTER = _ROLES["ClusterRole", "lamina-dashboard"]
DASHBOARD_OWN = _ROLES["Role", "lamina-dashboard"]
VIEW = _ROLES["ClusterRole", "lamina-view"]
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
