"""`lamina fits` about pods that must have their places together."""

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.dialects.groups import GROUP_LABEL
from lamina.dialects.workload_groups import MIN_MEMBERS
from lamina.ports.kube import PLUGIN_POD_GROUPS, RESOURCE_QUOTAS, Object
from tests.cli.commands import Commands, Ended
from tests.worlds.clusters import cluster, container, inventory, pod

GROUP = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}


def group(needed: Any) -> Object:
    return {**GROUP, "spec": {"minMember": needed}}


def members(number: int, of: str = "train", **limits: int) -> Object:
    template = {"metadata": {"labels": {GROUP_LABEL: "g"}}, "spec": {"containers": [container("main", **limits)]}}
    return {"kind": "ReplicaSet", "metadata": {"name": of}, "spec": {"replicas": number, "template": template}}


def single(name: str = "last", **limits: int) -> Object:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container("main", **limits)]}}


class Asked:
    """Two nodes with a GPU of 15360 MiB each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, kube: Any) -> None:
        self._commands, self._file, self.kube = Commands(monkeypatch, kube), folder / "group.json", kube

    async def __call__(self, *objects: Object) -> Ended:
        self._file.write_text(json.dumps({"kind": "List", "items": list(objects)}))
        return await self._commands.run("fits", "-f", str(self._file))


@pytest.fixture
async def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    return Asked(monkeypatch, tmp_path, await cluster(inventory("a"), inventory("b")))


@pytest.mark.parametrize(("number", "needed"), [(1, 1), (2, 2), (2, 1)])
async def test_a_group_whose_members_all_fit(ask: Asked, number: int, needed: int) -> None:
    ended = await ask(group(needed), members(number, gpumem=10000))
    assert ended.code == 0 and "fit" in ended.output and "does not" not in ended.output


async def test_a_group_that_fits_in_part_holds_nothing(ask: Asked) -> None:
    ended = await ask(group(3), members(3, gpumem=10000), single(gpumem=15360))
    assert ended.code == 1 and ended.output.splitlines() == [
        "pod group default/g is placed completely or not at all: 3 members must be placed at once, but only 2 can be "
        "placed now.",
        "One more pod of ReplicaSet train does not fit now: 0 of 2 nodes fit: 2 short of memory; nearest is a: needs "
        "10000 MiB; the best GPU has 5360 MiB free.",
        "  a, b: needs 10000 MiB; the best GPU has 5360 MiB free",
        "  To change that on b: request at most 5360 MiB.",
        "  To change that on b: wait until 4640 MiB more are free on a GPU of the node.",
        "Pod last fits now on a GPU 0.",
    ]


@pytest.mark.parametrize(
    ("spec", "annotations", "together"),
    [
        ({"completionMode": "Indexed", "parallelism": 3, "completions": 3}, {}, True),
        ({"completionMode": "Indexed", "parallelism": 3, "completions": 4}, {}, False),
        ({"completionMode": "Indexed", "parallelism": 3, "completions": 3}, {MIN_MEMBERS: "0"}, False),
        ({"completionMode": "Indexed", "parallelism": 3, "completions": 3}, {MIN_MEMBERS: "2"}, False),
        ({"parallelism": 3, "completions": 3}, {}, False),
        ({"parallelism": 3, "completions": 3}, {MIN_MEMBERS: "3"}, True),
    ],
)
async def test_the_pods_of_a_job_that_run_together_are_tried_together(
    ask: Asked, spec: dict[str, Any], annotations: dict[str, str], together: bool
) -> None:
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container("main", gpumem=10000)]}}
    meta = {"name": "train"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {**spec, "template": template}}
    ended = await ask(job)
    assert ended.code == 1
    alone = ended.output.splitlines()[0].startswith("2 of 3 pods of Job train fit now: ")
    assert alone is not together
    assert together == ended.output.startswith("Job default/train is placed completely or not at all: 3 members must ")


async def test_members_beyond_the_minimum_go_where_they_fit(ask: Asked) -> None:
    ended = await ask(group(2), members(3, gpumem=10000), single(gpumem=15360))
    lines = ended.output.splitlines()
    assert ended.code == 1 and lines[0].startswith("2 of 3 pods of ReplicaSet train fit now: ")
    assert any(line.startswith("Pod last does not fit now: ") for line in lines)


async def test_members_of_several_workloads_and_without_gpus_count(ask: Asked) -> None:
    ended = await ask(group(3), members(1, "leader"), members(2, gpumem=10000))
    assert ended.code == 0 and "ReplicaSet leader requests no GPU." in ended.output
    ended = await ask(group(4), members(1, "leader"), members(2, gpumem=10000))
    assert ended.code == 1 and "pod group default/g waits for its members: 2 of 3 exist." in ended.output


async def test_members_that_exist_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits = pod("waits", container(gpumem=10000))
    waits["metadata"]["labels"] = {GROUP_LABEL: "g"}
    ask = Asked(monkeypatch, tmp_path, await cluster(inventory("a"), inventory("b"), waits))
    assert (await ask(group(2), members(1, gpumem=10000))).code == 0
    ended = await ask(group(3), members(2, gpumem=10000))
    assert ended.code == 1 and "3 members must be placed at once, but only 2 can" in ended.output


async def test_the_group_of_the_cluster_counts_where_the_file_has_none(ask: Asked) -> None:
    ended = await ask(members(1, gpumem=1000))
    assert ended == Ended(1, "pod group default/g (scheduling.x-k8s.io/v1alpha1) does not exist.\n")
    await ask.kube.create(
        PLUGIN_POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    )
    assert (await ask(members(1, gpumem=1000))).code == 1
    assert (await ask(members(2, gpumem=1000))).code == 0


@pytest.mark.parametrize(
    ("policy", "number", "code"),
    [
        ({"gang": {"minCount": 2}}, 2, 0),
        ({"gang": {"minCount": 2}}, 1, 1),
        ({"basic": {}}, 1, 0),
        ({"basic": {}}, 3, 1),
    ],
)
async def test_groups_of_kubernetes_itself(ask: Asked, policy: Object, number: int, code: int) -> None:
    own = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    pods = members(number, gpumem=10000)
    pods["spec"]["template"] |= {"metadata": {}}
    pods["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    assert (await ask({**own, "spec": {"schedulingPolicy": policy}}, pods)).code == code


async def test_a_quota_for_some_of_the_members(ask: Asked) -> None:
    body = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "15000"}}}
    await ask.kube.create(RESOURCE_QUOTAS, body)
    ended = await ask(group(2), members(2, gpumem=8000))
    assert ended.code == 1 and "quota q allows 15000 of nvidia.com/gpumem" in ended.output
    assert (await ask(group(2), members(2, gpumem=7000))).code == 0


@pytest.mark.parametrize("needed", [0, -1, 1001, "two", None, True])
async def test_a_group_must_say_how_many_members_it_needs(ask: Asked, needed: Any) -> None:
    ended = await ask(group(needed), members(1, gpumem=1000))
    assert ended.code == 2 and "minMember must be an integer from 1 to 1000" in ended.error
