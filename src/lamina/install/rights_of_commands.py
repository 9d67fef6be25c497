"""The least rights with which commands work that read or change a cluster, for the roles of people."""

from lamina.configuration import CONFIG_MAP
from lamina.core.component_names import (
    ADMISSION_SECRET,
    DEFAULT_NAMESPACE,
    EXTENDER_CLIENT_SECRET,
    EXTENDER_SECRET,
    WEBHOOKS,
)
from lamina.core.definitions import custom_resource_definitions
from lamina.install.names import CONTROLLER
from lamina.install.rights import Rule

_WEBHOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

READER = (
    Rule("pods", "list"),
    Rule("grants.lamina.dev", "list"),
    Rule("inventories.lamina.dev", "list"),
    Rule("resourcequotas", "list"),
    Rule("configmaps", "get", (CONFIG_MAP,), "in Lamina's namespace"),
)
FOUND = (
    Rule(
        "clusterrolebindings.rbac.authorization.k8s.io",
        "get",
        (CONTROLLER,),
        f"where Lamina is installed; without it, {DEFAULT_NAMESPACE} or what `--lamina-namespace` says",
    ),
)
METRICS = (
    Rule("pods/proxy", "get", why="what GPUs use, from the pods of agents in Lamina's namespace; `-` without it"),
)
NODE_LABELS = (Rule("nodes", "list"),)
HOSTS = (Rule("nodes", "list", why="which nodes kube-scheduler allows a pod; only GPUs and quotas count without it"),)
MIG_LIST = (
    Rule("nodes", "list"),
    Rule("inventories.lamina.dev", "list"),
    Rule("events", "list", why="why a MIG configuration failed; left out without it"),
    Rule("resourceslices.resource.k8s.io", "list", why="which devices are offered to claims; left out without it"),
)
REFUSALS = (Rule("events", "list", why="when a pod was refused GPU memory; left out without it"),)
GROUPS = tuple(
    Rule(resource, "get", why="of pods that belong to one")
    for resource in (
        "podgroups.scheduling.k8s.io",
        "podgroups.scheduling.x-k8s.io",
        "podgroups.scheduling.volcano.sh",
        "jobsets.jobset.x-k8s.io",
        "leaderworkersets.leaderworkerset.x-k8s.io",
        "rayclusters.ray.io",
        "pytorchjobs.kubeflow.org",
        "jobs.batch",
    )
)
GROUPS_IF_POSSIBLE = tuple(
    Rule(rule.resource, rule.verbs, why="what groups lack whose pods wait; left out without it") for rule in GROUPS
)
CONFIGURATION = (Rule("configmaps", "get", (CONFIG_MAP,), "in Lamina's namespace"),)
CLAIMS = tuple(
    Rule(resource, "list", why="what pods with ResourceClaims wait for; without it, a warning says so")
    for resource in (
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    )
)
CLAIMS_IF_POSSIBLE = (
    Rule("devicetaintrules.resource.k8s.io", "list", why="which rules keep claims from devices; left out without it"),
    Rule("events", "list", why="why claims cannot be prepared on a node; left out without it"),
)
WORKLOADS = (
    Rule("deployments.apps", "get"),
    Rule("replicasets.apps", "get"),
    Rule("statefulsets.apps", "get"),
    Rule("daemonsets.apps", "get"),
    Rule("jobs.batch", "get"),
    Rule("cronjobs.batch", "get"),
)
NAMED = (
    Rule("namespaces", "get", why="whether a namespace exists in which nothing is found; left out without it"),
    *(Rule(rule.resource, "get", why="whether a name is one of a workload; left out without it") for rule in WORKLOADS),
)
REFUSED_WORKLOADS = tuple(
    Rule(rule.resource, "list", why="whose pods are refused; left out, with a warning, without it")
    for rule in WORKLOADS
)
DASHBOARD = (
    *(Rule(rule.resource, "list watch" if rule.names else "watch", rule.names, rule.why) for rule in READER),
    Rule("nodes", "list watch"),
    Rule("events", "list watch", why="when pods were refused GPU memory, or why claims cannot be prepared"),
    *CLAIMS,
    CLAIMS_IF_POSSIBLE[0],
    *GROUPS_IF_POSSIBLE,
    *(Rule(rule.resource, "list", why="whose pods are refused; left out without it") for rule in WORKLOADS),
)
CORDON = (Rule("nodes", "get patch"), Rule("inventories.lamina.dev", "get"))
RESIZE = (
    Rule("pods", "get patch"),
    Rule("configmaps", "get", (CONFIG_MAP,), "in Lamina's namespace; without it, only the controller refuses"),
    Rule("grants.lamina.dev", "list", why="of the pod's namespace; without it, only the controller refuses"),
    Rule("inventories.lamina.dev", "get", why="of a pod without a grant; without it, only the controller refuses"),
)
DOCTOR = (
    Rule("nodes", "list"),
    Rule(_WEBHOOKS, "list"),
    Rule("resourceslices.resource.k8s.io", "list"),
    Rule("deviceclasses.resource.k8s.io", "list"),
    Rule("devicetaintrules.resource.k8s.io", "list", why="which rules keep claims from devices; left out without it"),
    Rule(
        "configmaps",
        "get",
        (
            *("volcano-scheduler-configmap", "volcano-vgpu-device-config", "volcano-vgpu-node-config"),
            "hami-scheduler-device",
        ),
        "in volcano-system and kube-system: what Lamina does not read there; left out without it",
    ),
    Rule("pods", "create delete", why="`lamina-doctor` in default, a pod that admission has to refuse"),
)
RESET = (
    Rule("nodes", "list patch", why="of nodes without an agent"),
    Rule("nodes/status", "patch", why="of nodes without an agent"),
    Rule("configmaps", "create patch", (CONFIG_MAP,), "in Lamina's namespace"),
    Rule(_WEBHOOKS, "delete", (WEBHOOKS,)),
)
RESET_ALL = (
    Rule("configmaps", "delete", (CONFIG_MAP,), "in Lamina's namespace"),
    Rule("secrets", "delete", (ADMISSION_SECRET, EXTENDER_SECRET, EXTENDER_CLIENT_SECRET), "in Lamina's namespace"),
    Rule("leases.coordination.k8s.io", "list delete", why="in Lamina's namespace"),
    Rule(_DEFINITIONS, "delete", tuple(each["metadata"]["name"] for each in custom_resource_definitions())),
)
DEFRAG = (
    Rule("nodes", "get patch", why="the cordon of a GPU while its pods move"),
    Rule("inventories.lamina.dev", "get"),
    Rule("poddisruptionbudgets.policy", "list"),
    Rule("pods/eviction", "create"),
)


def _merged(*parts: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """One rule for each resource and its names, with the verbs of all."""
    verbs: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for rule in (rule for part in parts for rule in part):
        verbs.setdefault((rule.resource, rule.names), {}).update(dict.fromkeys(rule.verbs.split()))
    return tuple(Rule(resource, " ".join(sorted(of)), names) for (resource, names), of in verbs.items())


SEEN = _merged(
    READER,
    FOUND,
    REFUSALS,
    WORKLOADS,
    NAMED,
    REFUSED_WORKLOADS,
    NODE_LABELS,
    MIG_LIST,
    GROUPS,
    CONFIGURATION,
    CLAIMS,
    CLAIMS_IF_POSSIBLE,
    DASHBOARD,
)
"""Of the cluster role `lamina-view`: all commands that only read. `pods/proxy` is not among them, because it reaches
every port of every pod; without it, the amounts that GPUs use are not known."""
OF_COMMANDS: dict[str, tuple[Rule, ...]] = {
    "all of these but cordon, uncordon and mig list": FOUND,
    "gpus, top, pods, why, fits, quotas, cost, advise defrag, advise shares, advise idle": READER,
    "gpus, top, pods, cost, advise shares, advise idle, in addition to the first": METRICS,
    "gpus --selector, in addition to the first": NODE_LABELS,
    "why, fits, in addition to the first": HOSTS,
    "fits, for pods of a group whose PodGroup is not in the file": GROUPS,
    "pods, why, in addition to the first, for pods of a group": GROUPS_IF_POSSIBLE,
    "mig list": MIG_LIST,
    "config show, config diff": CONFIGURATION,
    "why POD, in addition to the first": REFUSALS,
    "pods, why, fits, doctor, in addition to the first, for ResourceClaims": (*CLAIMS, *CLAIMS_IF_POSSIBLE),
    "pods, in addition to the first": REFUSED_WORKLOADS,
    "why KIND/NAME, in addition to the first": WORKLOADS,
    "why POD, resize POD, lists of one namespace, in addition, where nothing is found": NAMED,
    "dashboard, in addition to the first": DASHBOARD,
    "the cluster role lamina-view": SEEN,
    "cordon gpu, uncordon gpu": CORDON,
    "resize": RESIZE,
    "doctor, in addition to the first": DOCTOR,
    "defrag, in addition to the first; the changes only with --yes": DEFRAG,
    "reset, in addition to the first": RESET,
    "reset --all, in addition to reset": RESET_ALL,
}
"""By the commands that need them."""
