"""Indexed Jobs: each pod has one of the completion indexes from 0, and the Job is complete when all have succeeded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects

INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = "JOB_COMPLETION_INDEX"


def is_indexed(job: Mapping[str, Any]) -> bool:
    return objects.spec(job).get("completionMode") == "Indexed"


def index_of(pod: Mapping[str, Any]) -> int:
    """The index that the pod has; -1 for a pod without one."""
    written = str((objects.meta(pod).get("annotations") or {}).get(INDEX, ""))
    return int(written) if written.isascii() and written.isdigit() else -1


def completed(job: Mapping[str, Any], pods: Sequence[Object]) -> set[int]:
    """The indexes that have succeeded, including those whose pods were deleted."""
    indexes = {index_of(pod) for pod in pods if objects.phase(pod) == "Succeeded"}
    indexes |= set(_parsed(str(objects.status(job).get("completedIndexes") or "")))
    return {index for index in indexes if 0 <= index < int(objects.spec(job)["completions"])}


def free(job: Mapping[str, Any], pods: Sequence[Object], count: int) -> list[int]:
    """The lowest `count` indexes that have not succeeded and have no active or terminating pod."""
    there = {index_of(pod) for pod in pods if not objects.is_finished(pod)}
    taken = there | completed(job, pods)
    return [index for index in range(int(objects.spec(job)["completions"])) if index not in taken][:count]


def with_index(pod: Object, job: Mapping[str, Any], index: int) -> Object:
    """The pod of one index: its name, annotation, label, host name, and a variable in each container."""
    metadata, spec = pod["metadata"], pod["spec"]
    origin = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}

    def counted(container: Object) -> Object:
        variables = container.get("env") or []
        if any(each["name"] == _VARIABLE for each in variables):
            return container
        return {**container, "env": [*variables, {"name": _VARIABLE, "valueFrom": origin}]}

    lists = {key: list(map(counted, spec[key])) for key in ("initContainers", "containers") if spec.get(key)}
    return {
        **pod,
        "metadata": {
            **metadata,
            "generateName": f"{objects.name(job)}-{index}-",
            "labels": {**metadata["labels"], INDEX: str(index)},
            "annotations": {**(metadata.get("annotations") or {}), INDEX: str(index)},
        },
        "spec": {**spec, **lists, "hostname": f"{objects.name(job)}-{index}"},
    }


def text(indexes: Iterable[int]) -> str:
    """As in `status.completedIndexes`, such as `0-2,5`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _parsed(written: str) -> Iterable[int]:
    for run in filter(None, written.split(",")):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)
