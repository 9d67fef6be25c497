"""The kinds of objects that controllers read and write."""

from lamina.ports.kube import (
    CRON_JOBS,
    DEVICE_TAINT_RULES,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STATEFUL_SETS,
    Resource,
)

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = Resource("batch", "v1", "jobs", "Job")

WATCHED = (
    *(DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, CONTROLLER_REVISIONS, DAEMON_SETS),
    *(CRON_JOBS, JOBS, PODS, NODES, LEASES),
    *(RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES, DEVICE_TAINT_RULES),
)
