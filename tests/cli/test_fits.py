"""`lamina fits`: pods of a manifest on the cluster as it is now."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.ports.kube import NODES, RESOURCE_QUOTAS, Object, Refused
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands, Ended
from tests.worlds.clusters import cluster, container, grant, inventory, pod


class Fits:
    """`lamina fits` about manifests on a cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, kube: FakeKube) -> None:
        self._commands = Commands(monkeypatch, kube)
        self._file = folder / "web.yaml"
        self.kube = kube

    async def ask(self, *objects: Object, output: str = "text") -> Ended:
        self._file.write_text("\n---\n".join(map(json.dumps, objects)))
        return await self._commands.run("fits", "-f", str(self._file), "-o", output)


@pytest.fixture
async def fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fits:
    """One node with two GPUs of 15360 MiB, of which the first has 1000 MiB free."""
    runs = pod("runs", container(gpu=1, gpumem=14360), node="n")
    return Fits(monkeypatch, tmp_path, await cluster(inventory("n", 2), runs, grant(runs, "n", 14360)))


def manifest(kind: str = "Pod", name: str = "web", replicas: int | None = None, **limits: int) -> Object:
    spec: dict[str, Any] = {"containers": [container(**limits)]}
    if kind != "Pod":
        spec = {"template": {"spec": spec}} | ({} if replicas is None else {"replicas": replicas})
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_a_pod_that_fits_is_answered_with_its_gpu(fits: Fits) -> None:
    before = [obj for _, obj in fits.kube.stored()]
    assert await fits.ask(manifest(gpu=1, gpumem=2000)) == Ended(0, "Pod web fits now on n GPU 1.\n")
    assert [obj for _, obj in fits.kube.stored()] == before


async def test_a_pod_that_misses_is_answered_with_numbers_and_what_to_change(fits: Fits) -> None:
    ended = await fits.ask(manifest(gpu=2, gpumem=2000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "Pod web does not fit now: node n: needs 2 GPUs; 1 fits; on 1 of 2 GPUs: needs 2000 MiB; the best of them has "
        "1000 MiB free.",
        "  To change that on n: request at most 1000 MiB.",
        "  To change that on n: wait until 1000 MiB more are free on a GPU of the node.",
    ]


async def test_scripts_get_each_answer_with_its_lines(fits: Fits) -> None:
    pods = manifest(gpu=1, gpumem=2000), manifest(name="large", gpu=1, gpumem=99999)
    as_json, as_yaml = await fits.ask(*pods, output="json"), await fits.ask(*pods, output="yaml")
    first, second = json.loads(as_json.output)
    assert first == {"fits": True, "lines": ["Pod web fits now on n GPU 1."]}
    assert not second["fits"] and second["lines"][0].startswith("Pod large does not fit now: ")
    assert yaml.safe_load(as_yaml.output) == [first, second]
    assert (as_json.code, as_yaml.code) == (1, 1)
    assert (await fits.ask(*pods, output="table")).error == "--output must be one of text, json, yaml, got 'table'"


async def test_pods_take_their_places_from_those_after_them(fits: Fits) -> None:
    ended = await fits.ask(manifest("Deployment", replicas=4, gpu=1, gpumem=7000), manifest(name="last", gpumem=1000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "2 of 4 pods of Deployment web fit now: 2 on n GPU 1.",
        "One more pod of Deployment web does not fit now: node n: needs 7000 MiB; the best GPU has 1360 MiB free.",
        "  To change that on n: request at most 1360 MiB.",
        "  To change that on n: wait until 5640 MiB more are free on a GPU of the node.",
        "Pod last fits now on n GPU 1.",
    ]


async def test_all_pods_of_a_workload(fits: Fits) -> None:
    ended = await fits.ask(manifest("Deployment", replicas=3, gpumem=1000))
    assert ended.code == 0 and ended.output.startswith("All 3 pods of Deployment web fit now: ")
    assert (await fits.ask(manifest("Deployment", replicas=0, gpumem=1000))).code == 0


async def test_nodes_with_other_reasons_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fits = Fits(monkeypatch, tmp_path, await cluster(inventory("a", 1), inventory("b", 2)))
    ended = await fits.ask(manifest(gpu=3, gpumem=1000))
    lines = ended.output.splitlines()
    assert ended.code == 1 and set(lines[1:3]) == {
        "  a: needs 3 GPUs; this node has 1",
        "  b: needs 3 GPUs; this node has 2",
    }
    assert lines[3].startswith("  To change that on b: request at most 2 GPUs")


async def test_a_quota_counts_with_the_pods_before(fits: Fits) -> None:
    hard = {"hard": {"limits.nvidia.com/gpumem": "18000"}}
    await fits.kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": hard})
    ended = await fits.ask(manifest("Deployment", replicas=2, gpumem=3000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "1 of 2 pods of Deployment web fit now: 1 on n GPU 1.",
        "One more pod of Deployment web does not fit: quota q allows 18000 of nvidia.com/gpumem; 17360 are used and "
        "the pod requests 3000.",
        "  To change that: request less, or raise the quota of namespace default.",
    ]


async def test_native_devices_are_counted_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fits = Fits(monkeypatch, tmp_path, await cluster(inventory("n", gpus=0, mig_1g_5gb=2)))
    ended = await fits.ask(manifest("Deployment", replicas=3, mig_1g_5gb=1))
    assert ended.code == 1
    assert ended.output.startswith("2 of 3 pods of Deployment web fit now: 2 on n, where kubelet chooses the devices.")
    assert "all 2 nvidia.com/mig-1g.5gb are allocated" in ended.output
    without = Fits(monkeypatch, tmp_path, await cluster(inventory("n")))
    ended = await without.ask(manifest(mig_1g_5gb=1))
    assert ended == Ended(1, "Pod web does not fit now: no node offers nvidia.com/mig-1g.5gb.\n")


async def test_pods_without_gpus_fit(fits: Fits) -> None:
    assert await fits.ask(manifest()) == Ended(0, "Pod web requests no GPU.\n")


async def test_bad_input_ends_with_2(fits: Fits) -> None:
    ended = await fits.ask(manifest(gpumem=-1))
    assert ended.code == 2 and ended.error.startswith("Pod web: ") and "nvidia.com/gpumem" in ended.error
    assert (await fits.ask({"kind": "Service", "metadata": {"name": "s"}})).code == 2


def with_spec(obj: Object, **spec: Any) -> Object:
    """The manifest of a pod with further fields of its specification."""
    return {**obj, "spec": {**obj["spec"], **spec}}


TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
CPU = {"name": "main", "resources": {"limits": {"nvidia.com/gpumem": "1000"}, "requests": {"cpu": "3"}}}


@pytest.mark.parametrize(
    ("node", "spec", "reason", "ways"),
    [
        (
            {"spec": {"unschedulable": True}},
            {},
            "the node is unschedulable (kubectl cordon)",
            ["run `kubectl uncordon n`"],
        ),
        (
            {"spec": {"taints": [TAINT]}},
            {},
            "the pod does not tolerate the taint team=a:NoSchedule",
            ["let the pod tolerate the taint", "remove the taint from the node"],
        ),
        (
            {},
            {"nodeSelector": {"pool": "a"}},
            "the node does not have the label pool=a that the pod selects",
            ["remove pool=a from the pod's nodeSelector", "label the node pool=a"],
        ),
        (
            {"status": {"allocatable": {"cpu": "2500m"}}},
            {"containers": [CPU]},
            "needs 3 CPU; this node offers 2.5",
            ["request at most 2.5 CPU", "add a node with more CPU"],
        ),
    ],
)
async def test_what_kube_scheduler_refuses_has_its_reason_and_ways_out(
    fits: Fits, node: Object, spec: Object, reason: str, ways: list[str]
) -> None:
    await fits.kube.patch(NODES, "n", node)
    ended = await fits.ask(with_spec(manifest(gpumem=1000), **spec))
    assert ended.code == 1 and ended.output.splitlines() == [
        f"Pod web does not fit now: node n: {reason}.",
        *[f"  To change that on n: {way}." for way in ways],
    ]


async def test_pods_take_cpu_from_those_after_them(fits: Fits) -> None:
    """The node has 8 CPU."""
    template = with_spec(manifest("Deployment", replicas=5), template={"spec": {"containers": [CPU]}})
    ended = await fits.ask(template)
    assert ended.code == 1 and ended.output.splitlines() == [
        "2 of 5 pods of Deployment web fit now: 1 on n GPU 0; 1 on n GPU 1.",
        "One more pod of Deployment web does not fit now: node n: needs 3 CPU; 2 of 8 free.",
        "  To change that on n: request at most 2 CPU.",
        "  To change that on n: wait until a pod on the node has ended.",
    ]


async def test_several_obstacles_of_a_node_are_one_way_out(fits: Fits) -> None:
    await fits.kube.patch(NODES, "n", {"spec": {"unschedulable": True}})
    ended = await fits.ask(manifest(gpumem=16000))
    assert ended.output.splitlines()[1:] == [
        "  To change that on n: run `kubectl uncordon n`, and request at most 15360 MiB."
    ]


async def test_of_two_nodes_each_has_its_own_ways_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = pod("runs", container(gpu=1), node="a")
    fits = Fits(monkeypatch, tmp_path, await cluster(inventory("a"), inventory("b"), runs, grant(runs, "a", 15000)))
    await fits.kube.patch(NODES, "b", {"spec": {"taints": [TAINT]}})
    ended = await fits.ask(manifest(gpumem=1000))
    assert ended.output.splitlines() == [
        "Pod web does not fit now: 0 of 2 nodes fit: 1 short of memory, 1 with a taint; nearest is a: needs 1000 MiB; "
        "the best GPU has 360 MiB free.",
        "  a: needs 1000 MiB; the best GPU has 360 MiB free",
        "  b: the pod does not tolerate the taint team=a:NoSchedule",
        "  To change that on b: let the pod tolerate the taint.",
        "  To change that on b: remove the taint from the node.",
        "  To change that on a: request at most 360 MiB.",
        "  To change that on a: wait until 640 MiB more are free on a GPU of the node.",
    ]


async def test_a_node_that_is_gone_takes_nothing(fits: Fits) -> None:
    await fits.kube.delete(NODES, "n")
    ended = await fits.ask(manifest(gpumem=1000))
    assert ended == Ended(1, "Pod web does not fit now: node n: the node no longer exists.\n")


async def test_who_may_not_list_nodes_is_warned(fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    await fits.kube.patch(NODES, "n", {"spec": {"unschedulable": True}})
    listed = fits.kube.list

    async def refuse_nodes(kind: Any, **options: Any) -> Any:
        if kind == NODES:
            raise Refused("nodes is forbidden")
        return await listed(kind, **options)

    monkeypatch.setattr(fits.kube, "list", refuse_nodes)
    ended = await fits.ask(manifest(gpumem=1000))
    warning, answer = ended.output.splitlines()
    assert ended.code == 0 and answer == "Pod web fits now on n GPU 0."
    assert warning.startswith("Warning: you may not list nodes")


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"pool": 1}},
        {"nodeSelector": ["pool"]},
        {"tolerations": ["team"]},
        {"tolerations": [{"key": 1}]},
        {"affinity": {"nodeAffinity": []}},
    ],
)
async def test_what_selects_nodes_must_have_the_shape_of_kubernetes(fits: Fits, spec: Object) -> None:
    ended = await fits.ask(with_spec(manifest(gpumem=1000), **spec))
    assert ended.code == 2 and "Pod web: the pod is malformed: " in ended.error
