"""Pods of a workload are a group without a PodGroup, where the workload runs all of them together."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, load
from lamina.dialects.groups import GROUP_LABEL, group_of
from lamina.dialects.workload_groups import MIN_MEMBERS
from lamina.errors import BadInput
from lamina.ledger.pod_groups import MAX_MEMBERS, members_needed
from tests.worlds.workload_pods import SPECS, metadata_of, owner

FORM = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
OFF = load(f"{FORM}placement: {{groups: []}}\n", "test")
NONE: dict[str, Any] = {}


def pod(metadata: dict[str, Any], **annotations: str) -> dict[str, Any]:
    together = {**metadata.get("annotations", {}), **annotations}
    return {"metadata": {"name": "p", "namespace": "team", **metadata, "annotations": together}, "spec": {}}


def needed(kind: str, spec: dict[str, Any]) -> int:
    name = group_of(pod(metadata_of(kind, "w", 0)), DEFAULT)
    assert name is not None
    return members_needed(name, spec)


@pytest.mark.parametrize("kind", SPECS)
def test_all_pods_of_a_workload_belong_to_it(kind: str) -> None:
    names = {group_of(pod(metadata_of(kind, "w", number)), DEFAULT) for number in range(3)}
    [name] = names
    assert name is not None and (name.kind, name.namespace, name.name) == (kind, "team", "w")
    assert str(name).startswith(f"{kind} team/w") and needed(kind, SPECS[kind]) == 3
    label, _, value = name.selector.partition("=")
    assert metadata_of(kind, "w", 1)["labels"][label] == value


@pytest.mark.parametrize("kind", SPECS)
def test_a_kind_that_the_configuration_leaves_out_makes_no_group(kind: str) -> None:
    others = ", ".join(each for each in SPECS if each != kind)
    config = load(f"{FORM}placement: {{groups: [{others}]}}\n", "test")
    for number in range(3):
        assert group_of(pod(metadata_of(kind, "w", number)), config) is None
        assert group_of(pod(metadata_of(kind, "w", number)), OFF) is None


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("owners", [[], [owner("example.com/v1", "Other", "w")], None])
def test_labels_alone_make_no_member(kind: str, owners: list[dict[str, Any]] | None) -> None:
    metadata = metadata_of(kind, "w", 0)
    metadata["ownerReferences"] = owners if owners is not None else [metadata["ownerReferences"][0] | NONE]
    if owners is None:
        metadata["ownerReferences"][0].pop("controller")
    assert group_of(pod(metadata), DEFAULT) is None


@pytest.mark.parametrize("kind", SPECS)
def test_a_pod_group_that_is_named_comes_first(kind: str) -> None:
    metadata = metadata_of(kind, "w", 0)
    metadata["labels"] = metadata["labels"] | {GROUP_LABEL: "g"}
    name = group_of(pod(metadata), DEFAULT)
    assert name is not None and (name.kind, name.name) == ("", "g")


@pytest.mark.parametrize("config", [DEFAULT, OFF])
@pytest.mark.parametrize("kind", [*SPECS, "ReplicaSet", "Workflow"])
def test_an_annotation_makes_a_group_of_the_pods_of_any_controller(kind: str, config: Any) -> None:
    metadata = metadata_of(kind, "w", 0) if kind in SPECS else {"ownerReferences": [owner("a/v1", kind, "w")]}
    name = group_of(pod(metadata, **{MIN_MEMBERS: "4"}), config)
    assert name is not None and members_needed(name, {}) == 4
    alone = group_of(pod(metadata, **{MIN_MEMBERS: "0"}), config)
    assert alone is not None and members_needed(alone, SPECS.get(kind, {})) == 0
    assert group_of(pod({}, **{MIN_MEMBERS: "4"}), config) is None, "no controller has it"


@pytest.mark.parametrize(
    "references",
    [
        owner("a/v1", "Other", "w\n"),
        owner("a/v1", "Other", "\x1b[2J"),
        owner("a/v1", "Other", ""),
        owner("a/v1", "Other\x1b", "w"),
        owner("a/v1", "", "w"),
    ],
)
def test_an_owner_with_a_name_that_no_object_has_makes_no_group(references: dict[str, Any]) -> None:
    assert group_of(pod({"ownerReferences": [references]}, **{MIN_MEMBERS: "2"}), DEFAULT) is None


def test_the_steps_of_an_argo_workflow_are_groups_of_their_own() -> None:
    def name(node: str) -> Any:
        metadata = {"ownerReferences": [owner("argoproj.io/v1alpha1", "Workflow", "wf")]}
        step = {"workflows.argoproj.io/node-name": node, MIN_MEMBERS: "2"}
        return group_of(pod(metadata, **step), DEFAULT)

    assert name("wf[0].train(0:a)") == name("wf[0].train(1:b)") != name("wf[1].test(0:a)")
    assert str(name("wf[0].train(0:a)")) == "Workflow team/wf (wf[0].train)"


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Job", {}, 0),
        ("Job", {"completionMode": "Indexed", "completions": 1, "parallelism": 1}, 0),
        ("Job", {"completionMode": "Indexed", "completions": 4, "parallelism": 2}, 0),
        ("Job", {"completionMode": "NonIndexed", "completions": 4, "parallelism": 4}, 0),
        ("Job", {"completionMode": "Indexed", "completions": 4, "parallelism": 0}, 0),
        ("JobSet", {"replicatedJobs": [{}, {"replicas": 2, "template": {"spec": {"parallelism": 4}}}]}, 9),
        ("JobSet", {"replicatedJobs": [{"template": {"spec": {"parallelism": 4, "completions": 2}}}]}, 2),
        ("JobSet", {"replicatedJobs": [{}, {"dependsOn": [{"name": "a"}]}]}, 0),
        ("JobSet", {"replicatedJobs": [{}, {}], "startupPolicy": {"startupPolicyOrder": "InOrder"}}, 0),
        ("JobSet", {"replicatedJobs": [{}, {}], "startupPolicy": {"startupPolicyOrder": "AnyOrder"}}, 2),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {}}, 1),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 8}, "startupPolicy": "LeaderCreated"}, 8),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 8}, "startupPolicy": "LeaderReady"}, 0),
        ("RayCluster", {"headGroupSpec": {}}, 1),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 2, "numOfHosts": 4}, {"replicas": 1}]}, 10),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 2, "suspend": True}, {"minReplicas": 3}]}, 4),
        ("RayCluster", {"enableInTreeAutoscaling": True, "workerGroupSpecs": [{"replicas": 5, "minReplicas": 2}]}, 3),
        ("RayCluster", {"enableInTreeAutoscaling": True, "workerGroupSpecs": [{"replicas": 5}]}, 1),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 4}}}, 4),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Master": {}, "Worker": {}}}, 2),
        ("PyTorchJob", {"elasticPolicy": {"minReplicas": 2}, "pytorchReplicaSpecs": {"Worker": {"replicas": 4}}}, 2),
        ("PyTorchJob", {"elasticPolicy": {"minReplicas": 9}, "pytorchReplicaSpecs": {"Worker": {"replicas": 4}}}, 4),
        ("PyTorchJob", {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}, "pytorchReplicaSpecs": {}}, 3),
        ("Job", {"completionMode": "Indexed", "completions": MAX_MEMBERS, "parallelism": MAX_MEMBERS}, MAX_MEMBERS),
        ("Job", {"completionMode": "Indexed", "completions": MAX_MEMBERS + 1, "parallelism": MAX_MEMBERS + 1}, 0),
        *((kind, {}, 0) for kind in SPECS),
        *((kind, {"replicatedJobs": 5, "workerGroupSpecs": [3], "pytorchReplicaSpecs": []}, None) for kind in SPECS),
    ],
)
def test_how_many_pods_of_a_workload_run_together(kind: str, spec: dict[str, Any], count: int | None) -> None:
    found = needed(kind, spec)
    assert found == count or count is None


@pytest.mark.parametrize("bad", [-1, True, "4", 1.5, [], {}])
@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Job", lambda bad: {"completionMode": "Indexed", "parallelism": bad}),
        ("JobSet", lambda bad: {"replicatedJobs": [{"replicas": bad}]}),
        ("LeaderWorkerSet", lambda bad: {"leaderWorkerTemplate": {"size": bad}}),
        ("RayCluster", lambda bad: {"workerGroupSpecs": [{"replicas": bad}]}),
        ("PyTorchJob", lambda bad: {"pytorchReplicaSpecs": {"Worker": {"replicas": bad}}}),
    ],
)
def test_a_field_that_is_no_number_of_pods_is_named(kind: str, spec: Any, bad: object) -> None:
    with pytest.raises(BadInput, match=rf"^{kind} team/w.*: \w+ must be an integer from 0, got "):
        needed(kind, spec(bad))


@pytest.mark.parametrize("groups", ["[StatefulSet]", "Job", "[job]", "true"])
def test_other_kinds_are_refused(groups: str) -> None:
    with pytest.raises(BadInput, match="must be a list of JobSet, LeaderWorkerSet, RayCluster, PyTorchJob and Job"):
        load(f"{FORM}placement: {{groups: {groups}}}\n", "test")
