"""What the controllers of workloads write on their pods, and specs with three pods that run together."""

from typing import Any

from lamina.ports.kube import JOB_SETS, JOBS, LEADER_WORKER_SETS, PYTORCH_JOBS, RAY_CLUSTERS

Metadata = dict[str, Any]
JOB_NAME, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"

RESOURCES = {
    "JobSet": JOB_SETS,
    "LeaderWorkerSet": LEADER_WORKER_SETS,
    "RayCluster": RAY_CLUSTERS,
    "PyTorchJob": PYTORCH_JOBS,
    "Job": JOBS,
}
SPECS: dict[str, dict[str, Any]] = {
    "JobSet": {"replicatedJobs": [{"name": "workers", "replicas": 3, "template": {"spec": {"parallelism": 1}}}]},
    "LeaderWorkerSet": {"replicas": 2, "leaderWorkerTemplate": {"size": 3}},
    "RayCluster": {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2}]},
    "PyTorchJob": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}},
    "Job": {"completionMode": "Indexed", "completions": 3, "parallelism": 3},
}


def owner(api_version: str, kind: str, name: str) -> Metadata:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}


def metadata_of(kind: str, name: str, number: int) -> Metadata:
    """Those of a pod of the workload."""
    match kind:
        case "JobSet":
            job = f"{name}-workers-{number}"
            labels = {"jobset.sigs.k8s.io/jobset-name": name, JOB_NAME: job}
            return {"labels": labels, "annotations": {INDEX: "0"}, "ownerReferences": [owner("batch/v1", "Job", job)]}
        case "LeaderWorkerSet":
            labels = {"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/group-index": "0"}
            above = f"{name}-0" if number else name
            return {"labels": labels, "ownerReferences": [owner("apps/v1", "StatefulSet", above)]}
        case "RayCluster":
            return {"labels": {"ray.io/cluster": name}, "ownerReferences": [owner("ray.io/v1", kind, name)]}
        case "PyTorchJob":
            labels = {"training.kubeflow.org/job-name": name}
            return {"labels": labels, "ownerReferences": [owner("kubeflow.org/v1", kind, name)]}
        case _:
            labels = {JOB_NAME: name, INDEX: str(number)}
            references = [owner("batch/v1", "Job", name)]
            return {"labels": labels, "annotations": {INDEX: str(number)}, "ownerReferences": references}
