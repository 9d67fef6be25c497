"""The pods of manifests, in whatever object they are."""

import json
from typing import Any

import pytest

from lamina.errors import BadInput
from lamina.report.pod_templates import PodTemplate, pod_templates
from tests.worlds.clusters import container

POD = {"containers": [container(gpu=1)]}


def templates(*objects: Any) -> list[PodTemplate]:
    return pod_templates("\n---\n".join(map(json.dumps, objects)), "web.yaml", "team")


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "web"}, "spec": {"template": {"spec": POD}, **spec}}


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("Deployment", {}, 1),
        ("StatefulSet", {"replicas": 0}, 0),
        ("ReplicaSet", {"replicas": 2}, 2),
        ("ReplicationController", {"replicas": 2}, 2),
        ("Job", {}, 1),
        ("Job", {"parallelism": 4}, 4),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"parallelism": 2, "completions": 9}, 2),
    ],
)
def test_workloads_have_as_many_pods_as_run_at_the_same_time(kind: str, spec: dict[str, Any], count: int) -> None:
    [found] = templates(workload(kind, **spec))
    assert (found.title, found.number) == (f"{kind} web", count)
    metadata = found.pod["metadata"]
    assert (metadata["name"], metadata["namespace"], found.pod["spec"]) == ("web", "team", POD)
    assert [each["name"] for each in metadata["ownerReferences"]] == ["web"]


def test_a_cron_job_has_the_pods_of_its_job() -> None:
    job = {"spec": {"parallelism": 2, "template": {"spec": POD}}}
    [found] = templates({"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": job}})
    assert (found.title, found.number, found.pod["spec"]) == ("CronJob c", 2, POD)


def test_lists_documents_and_other_kinds() -> None:
    pod = {"kind": "Pod", "metadata": {"generateName": "p-", "namespace": "own"}, "spec": POD}
    service = {"kind": "Service", "metadata": {"name": "s"}}
    found = templates({"kind": "List", "items": [pod, service, workload("DaemonSet")]}, None, pod)
    assert [each.title for each in found] == ["Pod p-", "one pod of DaemonSet web", "Pod p-"]
    assert [each.pod["metadata"]["namespace"] for each in found] == ["own", "team", "own"]


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], "web.yaml has no pod and no workload; "),
        ([{"kind": "Service", "metadata": {"name": "s"}}], "web.yaml has no pod and no workload; "),
        ([["a", "list"]], "web.yaml contains an item that is not a Kubernetes object"),
        ([{"metadata": {}}], "web.yaml contains an item that is not a Kubernetes object"),
        ([{"kind": "Pod", "spec": POD}], "web.yaml: a Pod has no metadata"),
        ([{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": 7}}], "web.yaml, Pod p: the pod is malf"),
        ([workload("Deployment", replicas="3")], "web.yaml, Deployment web: "),
        ([workload("Deployment", replicas=-1)], "web.yaml, Deployment web: replicas must be an integer of at least 0"),
        ([workload("Job", parallelism=True)], "web.yaml, Job web: "),
        ([{"kind": "Job", "metadata": {"name": "web"}, "spec": 7}], "web.yaml, Job web: the workload is malformed"),
    ],
)
def test_what_is_no_manifest_is_one_sentence(objects: list[Any], reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        templates(*objects)
    assert str(caught.value).startswith(reason)
