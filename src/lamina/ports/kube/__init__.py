"""The door to Kubernetes: objects are plain dictionaries, as JSON has them.

`protocol` says what can be asked, `client` asks a real API server, `fake` is a small one in memory for tests, `follow`
keeps up with a collection whatever happens to the connection, `events` writes events that count their repetitions.
"""

from lamina.ports.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Refused, Unreachable
from lamina.ports.kube.events import EventRecorder
from lamina.ports.kube.follow import Followed, follow
from lamina.ports.kube.protocol import Kube, Listing, Object, Patch, PatchKind, Watched
from lamina.ports.kube.resources import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    GRANTS,
    INVENTORIES,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PLUGIN_POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SECRETS,
    VOLCANO_POD_GROUPS,
    Resource,
)

__all__ = [
    "CLUSTER_POLICIES",
    "CONFIG_MAPS",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "DEPLOYMENTS",
    "DISRUPTION_BUDGETS",
    "EVENTS",
    "GRANTS",
    "INVENTORIES",
    "LEASES",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "NODES",
    "PLUGIN_POD_GROUPS",
    "PODS",
    "PRIORITY_CLASSES",
    "RESOURCE_QUOTAS",
    "SECRETS",
    "VOLCANO_POD_GROUPS",
    "AlreadyExists",
    "Conflict",
    "EventRecorder",
    "Followed",
    "Gone",
    "Kube",
    "Listing",
    "NotFound",
    "Object",
    "Patch",
    "PatchKind",
    "Refused",
    "Resource",
    "Unreachable",
    "Watched",
    "follow",
]
