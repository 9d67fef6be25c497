"""What is in Lamina's namespace: kinds of objects that an installation has there, and objects of others.

Every namespace has a few objects that Kubernetes or the platform makes, such as the authorities of the cluster. They
are of no one.
"""

from lamina.ports.kube import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOBS,
    NETWORK_POLICIES,
    PODS,
    PROMETHEUS_RULES,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kube,
    NotFound,
    Object,
)

WITHIN = (
    DEPLOYMENTS,
    DAEMON_SETS,
    SERVICES,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    RESOURCE_QUOTAS,
    CONFIG_MAPS,
    SERVICE_MONITORS,
    PROMETHEUS_RULES,
    SERVICE_ACCOUNTS,
)
"""Kinds of objects that an installation creates in its namespace, next to roles."""
_KEPT = (
    *(PODS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, JOBS, CRON_JOBS),
    *(SERVICES, CONFIG_MAPS, SECRETS, VOLUME_CLAIMS),
)
"""Kinds of objects that others would miss."""
_SHOWN = 5
_OF_NO_ONE = ("kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert")
_OF_ACCOUNTS = ("kubernetes.io/service-account-token", "kubernetes.io/dockercfg")
"""Types of Secrets that platforms make for each service account."""


async def objects_of_others(kube: Kube, namespace: str) -> list[str]:
    """The first of these objects by kind and name, and how many more there are. Raises Outside."""
    found: list[str] = []
    for resource in _KEPT:
        try:
            listed = (await kube.list(resource, namespace=namespace)).items
        except NotFound:  # a kind that this server does not have
            continue
        found += [f"{resource.kind} {each['metadata']['name']}" for each in listed if _is_of_others(each)]
    more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return [*found[:_SHOWN], *more]


def _is_of_others(obj: Object) -> bool:
    meta = obj["metadata"]
    ours = (meta.get("labels") or {}).get("app.kubernetes.io/name") == "lamina"
    return not (ours or meta["name"] in _OF_NO_ONE or obj.get("type") in _OF_ACCOUNTS)
