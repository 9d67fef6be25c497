"""Workloads whose pods are a group without a PodGroup object: JobSet, LeaderWorkerSet, RayCluster, PyTorchJob and Job.

Each has labels on its pods that say which one they belong to, and its own fields for how many pods run together. Where
its pods are not created all at once, each is placed alone. The annotation `lamina.dev/group-min-members` says the
number for the pods of any controller, such as the parallel steps of an Argo Workflow. Labels alone make no member: a
controller has to own the pod.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

MIN_MEMBERS: Final = "lamina.dev/group-min-members"
"""The annotation of pods that says how many of their controller's pods run together."""
_JOB_NAME = "batch.kubernetes.io/job-name"
_INDEX = "batch.kubernetes.io/job-completion-index"
_ARGO_STEP = "workflows.argoproj.io/node-name"

Spec = Mapping[str, Any]


class GroupedWorkload(NamedTuple):
    """A kind of workload: its API group, which controllers own its pods, and the labels that name it."""

    kind: str
    api: str
    owners: tuple[tuple[str, str], ...]
    name_label: str
    count: Callable[[Spec], int]
    """How many pods run together by its spec; 0 where each is placed alone. Raises ValueError for fields that no API
    server accepts."""
    part_label: str = ""
    """Its value tells apart the groups of one workload."""
    annotation: str = ""
    """What a pod has to have in addition."""


class OwnedPod(NamedTuple):
    """Which workload a pod belongs to. `workload` is None for a kind that only counts by the annotation."""

    workload: GroupedWorkload | None
    kind: str
    api: str
    name: str
    part: str


def owned_pod(pod: Mapping[str, Any]) -> OwnedPod | None:
    """The workload of a pod that a controller owns."""
    meta = pod.get("metadata") or {}
    owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return None
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    api, kind = str(owner.get("apiVersion")).partition("/")[0], str(owner.get("kind"))
    for each in WORKLOADS:
        if (api, kind) in each.owners and each.name_label in labels and each.annotation in {"", *annotations}:
            part = str(labels.get(each.part_label, "")) if each.part_label else ""
            return OwnedPod(each, each.kind, each.api, str(labels[each.name_label]), part)
    step = str(annotations.get(_ARGO_STEP, "")).partition("(")[0]
    return OwnedPod(None, kind, api, str(owner.get("name")), step)


def metadata_of_owned(metadata: Mapping[str, Any], workload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The metadata that a workload's controller adds to its pods and that decides their group."""
    kind = str(workload["kind"])
    owner = {"apiVersion": workload.get("apiVersion"), "kind": kind, "name": name, "controller": True}
    found: dict[str, Any] = {"ownerReferences": [owner]}
    if kind == "Job" and _inner(workload, "spec").get("completionMode") == "Indexed":
        found["labels"] = {**(metadata.get("labels") or {}), _JOB_NAME: name}
        found["annotations"] = {**(metadata.get("annotations") or {}), _INDEX: "0"}
    return found


def number(spec: Spec, field: str, default: int = 1) -> int:
    """The field as a number of pods. Raises ValueError."""
    value = spec.get(field)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{field} must be an integer from 0, got {value!r}")
    return value


def _entries(spec: Spec, field: str) -> Iterator[Spec]:
    """The objects of a list of objects, or of a mapping to objects."""
    value = spec.get(field)
    entries = value.values() if isinstance(value, Mapping) else value
    yield from (each for each in entries if isinstance(each, Mapping)) if isinstance(entries, list) else ()


def _inner(spec: Spec, *fields: str) -> Spec:
    for field in fields:
        value = spec.get(field)
        spec = value if isinstance(value, Mapping) else {}
    return spec


def _of_job(spec: Spec) -> int:
    """All pods of an indexed Job that runs all of its indexes at once, as Kubernetes' own groups of Jobs."""
    parallelism = number(spec, "parallelism")
    together = spec.get("completionMode") == "Indexed" and number(spec, "completions", parallelism) == parallelism
    return parallelism if together and parallelism > 1 else 0


def _of_job_set(spec: Spec) -> int:
    """The pods of all jobs, unless some jobs are created after others."""
    jobs = list(_entries(spec, "replicatedJobs"))
    in_order = _inner(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder"
    if in_order or any(job.get("dependsOn") for job in jobs):
        return 0
    return sum(number(job, "replicas") * _pods_at_once(_inner(job, "template", "spec")) for job in jobs)


def _pods_at_once(job: Spec) -> int:
    parallelism = number(job, "parallelism")
    return min(parallelism, number(job, "completions", parallelism))


def _of_leader_and_workers(spec: Spec) -> int:
    """The pods of one replica, unless workers are created after their leader is ready."""
    if spec.get("startupPolicy") == "LeaderReady":
        return 0
    return number(_inner(spec, "leaderWorkerTemplate"), "size")


def _of_ray(spec: Spec) -> int:
    """The head and all workers, or as few as the autoscaler leaves."""
    field = "minReplicas" if spec.get("enableInTreeAutoscaling") else "replicas"
    groups = [each for each in _entries(spec, "workerGroupSpecs") if not each.get("suspend")]
    return 1 + sum(number(each, field, number(each, "minReplicas", 0)) * number(each, "numOfHosts") for each in groups)


def _of_pytorch(spec: Spec) -> int:
    """What it says of gangs, or all replicas, or as few workers as it goes on with."""
    said = _inner(spec, "runPolicy", "schedulingPolicy")
    if "minAvailable" in said:
        return number(said, "minAvailable")
    replicas = _inner(spec, "pytorchReplicaSpecs")
    workers = number(_inner(replicas, "Worker"), "replicas") if "Worker" in replicas else 0
    masters = number(_inner(replicas, "Master"), "replicas") if "Master" in replicas else 0
    return masters + min(workers, number(_inner(spec, "elasticPolicy"), "minReplicas", workers))


_JOB = (("batch", "Job"),)
WORKLOADS: Final = (
    GroupedWorkload("JobSet", "jobset.x-k8s.io", _JOB, "jobset.sigs.k8s.io/jobset-name", _of_job_set),
    GroupedWorkload(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        (("apps", "StatefulSet"), ("apps", "ReplicaSet")),
        "leaderworkerset.sigs.k8s.io/name",
        _of_leader_and_workers,
        part_label="leaderworkerset.sigs.k8s.io/group-index",
    ),
    GroupedWorkload("RayCluster", "ray.io", (("ray.io", "RayCluster"),), "ray.io/cluster", _of_ray),
    GroupedWorkload(
        "PyTorchJob", "kubeflow.org", (("kubeflow.org", "PyTorchJob"),), "training.kubeflow.org/job-name", _of_pytorch
    ),
    GroupedWorkload("Job", "batch", _JOB, _JOB_NAME, _of_job, annotation=_INDEX),
)
