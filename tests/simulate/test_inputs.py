"""Nodes and pods from traces and dumps, in every dialect that describes GPUs."""

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import write_spec
from lamina.errors import BadInput
from lamina.operations.simulate import read_nodes, read_pods
from lamina.operations.simulate.dump import gpus_of
from tests.configuration.odd_yaml import ODD_TEXTS
from tests.distortion import distorted, nested

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,T4\nn1,8000,1024,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_trace(tmp_path: Path) -> None:
    first, second = read_nodes(file(tmp_path, "nodes.csv", NODES))
    assert (first.name, first.cpu, first.memory_mib, len(first.gpus), second.gpus) == ("n0", 64000, 262144, 2, ())
    assert (first.gpus[0].model, first.gpus[0].memory_mib) == ("T4", 15360)
    rows = "a,1000,2000,1,460,V100|T4,LS,Running,5,9,5\nb,1,2,2,1000,,LS,Running,6,,6\nc,1,2,0,0,,LS,Running,7,8,7\n"
    share, whole, plain = read_pods(file(tmp_path, "pods.csv", PODS + rows))
    assert share.request is not None and whole.request is not None and plain.request is None
    assert share.request.selector.types == ("V100", "T4") and (share.created, share.deleted) == (5.0, 9.0)
    [container] = share.request.containers
    assert (container.memory_percent, container.cores, container.exclusive) == (46, 46, False)
    [container] = whole.request.containers
    assert (container.count, container.whole, whole.deleted) == (2, True, None)


SHARED = {"product": "Tesla-T4-SHARED", "memory": "15360", "replicas": "4"}
HAMI = [
    {"id": "GPU-a", "count": 10, "devmem": 32768, "devcore": 100, "type": "NVIDIA A100", "health": True},
    {"id": "GPU-b", "index": 1, "count": 4, "devmem": 1000, "devcore": 200, "type": "X", "numa": 1},
]  # fmt: skip


@pytest.mark.parametrize(
    ("annotations", "labels", "found"),
    [
        (
            {"hami.io/node-nvidia-register": json.dumps(HAMI)},
            {},
            [("GPU-a", 0, "NVIDIA A100", 32768, 10, 100, True), ("GPU-b", 1, "X", 1000, 4, 200, False)],
        ),
        (
            {"hami.io/node-nvidia-register": "GPU-a,10,7680,100,NVIDIA-Tesla P4,0,true:GPU-b,5,80,50,T,1,false,1,x:"},
            {},
            [("GPU-a", 0, "NVIDIA-Tesla P4", 7680, 10, 100, True), ("GPU-b", 1, "T", 80, 5, 50, False)],
        ),
        (
            {"volcano.sh/node-vgpu-register": "GPU-a,10,89424,NVIDIA-H100,true,hami-core:GPU-b,1,10,NVIDIA-T4,false:"},
            {},
            [("GPU-a", 0, "NVIDIA-H100", 89424, 10, 100, True), ("GPU-b", 1, "NVIDIA-T4", 10, 1, 100, False)],
        ),
        (
            {},
            {f"nvidia.com/gpu.{key}": text for key, text in SHARED.items()},
            [("n-0", 0, "Tesla-T4", 15360, 10, 100, True)],
        ),
        ({}, {}, [(f"n-{i}", i, "GPU", 16384, 10, 100, True) for i in range(4)]),
    ],
)  # fmt: skip
def test_the_gpus_of_a_node(annotations: dict[str, str], labels: dict[str, str], found: list[Any]) -> None:
    node = {
        "metadata": {"name": "n", "annotations": annotations, "labels": labels},
        "status": {"capacity": {"nvidia.com/gpu": "4"}},
    }
    gpus = gpus_of(node)
    assert [(g.uuid, g.index, g.model, g.memory_mib, g.slots, g.cores_capacity, g.healthy) for g in gpus] == found


def test_a_cordon_and_an_inventory(tmp_path: Path) -> None:
    node: dict[str, Any] = {
        "kind": "Node",
        "metadata": {"name": "n", "annotations": {"hami.io/device-cordon": "n-1"}},
        "status": {"capacity": {"nvidia.com/gpu": "2", "cpu": "4", "memory": "8Gi"}},
    }
    assert [gpu.cordoned for gpu in gpus_of(node)] == [False, True]
    gpu = Gpu(uuid="GPU-x", index=0, model="M", memory_mib=7, capacity_mib=9)
    inventory = {
        "kind": "Inventory",
        "metadata": {"name": "n"},
        "spec": write_spec(Inventory(node="n", gpus=(gpu,))),
    }
    for items in ([node, inventory], [inventory, node]):
        [read] = read_nodes(file(tmp_path, "d.json", json.dumps({"kind": "List", "items": items})))
        assert (read.gpus, read.cpu, read.memory_mib) == ((gpu,), 4000, 8192)


def test_pods_of_a_dump(tmp_path: Path) -> None:
    def pod(name: str, born: int, phase: str = "Running", **limits: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": "ns", "creationTimestamp": f"2026-01-01T00:00:0{born}Z"}
        spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": limits}}]}
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}

    share = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1k", "cpu": "500m", "memory": "1Gi"}
    items = [pod("young", 5, **share), pod("ended", 1, "Succeeded"), pod("old", 2, cpu="2")]
    old, young = read_pods(file(tmp_path, "p.json", json.dumps({"kind": "PodList", "items": items})))
    assert (old.name, old.cpu, old.request, old.node) == ("ns/old", 2000, None, "n")
    assert young.request is not None and young.request.containers[0].memory_mib == 1000
    assert (young.cpu, young.memory_mib) == (500, 1024)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("n.csv", "sn,cpu_milli\n", "has no column memory_mib"),
        ("n.csv", NODES.replace("64000", "many"), "row n0: cpu_milli must be an integer from 0, got 'many'"),
        ("n.csv", "sn,cpu_milli,memory_mib,gpu,model\n", "has no nodes"),
        ("n.json", "{", "is not JSON"),
        ("n.yaml", "[1]", "is no dump of Kubernetes objects"),
        (
            "n.json",
            '{"kind": "Node", "metadata": {"name": "x", "annotations": {"hami.io/node-nvidia-register": "a,b:"}}}',
            "node x: its annotation about GPUs cannot be read",
        ),
        ("n.json", '{"kind": "List", "items": []}', "has no nodes"),
        ("n.json", '{"kind": "List"}', "not a Kubernetes object: Expected `object`, got `null`"),
        ("n.json", '{"kind": "List", "items": {}}', "not a Kubernetes object: Object missing required field `kind`"),
        ("n.json", '{"kind": "List", "items": ["Node"]}', "not a Kubernetes object: Expected `object`, got `str`"),
        ("n.json", '{"kind": "Node"}', "not a Kubernetes object: Object missing required field `metadata`"),
        ("n.json", '{"kind": "Node", "metadata": {}}', "Object missing required field `name`"),
        ("n.json", '{"kind": "Node", "metadata": {"name": "n"}, "status": 1}', "got `int` - at"),
        (
            "n.csv",
            NODES.replace("n0,64000,262144,2,T4", "n0,64000"),
            "row n0: memory_mib must be an integer from 0, got ''",
        ),
        ("n.csv", NODES.replace("64000", "-1"), "row n0: cpu_milli must be an integer from 0, got '-1'"),
        ("n.csv", NODES.replace("64000", "²"), "row n0: cpu_milli must be an integer from 0, got '²'"),
        ("n.csv", f"{NODES}{'x' * 140_000}", r"n\.csv, line 4: field larger than field limit"),
    ],
)
def test_what_cannot_be_read_is_reported(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_nodes(file(tmp_path, name, text))


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    for name in ("n.csv", "n.json", "n.yaml"):
        (tmp_path / name).write_bytes(b"kind: \xff\xfe")
        with pytest.raises(BadInput, match=r"is not UTF-8 text|is not JSON|invalid YAML"):
            read_nodes(tmp_path / name)
    with pytest.raises(BadInput, match=r"cannot read .*: Is a directory"):
        read_nodes(tmp_path)


@pytest.mark.parametrize(
    ("times", "created", "deleted"),
    [("5,9,5", 5.0, 9.0), (",,", 0.0, None), ("0,0,", 0.0, 0.0), ("1e3,2.5e3,", 1000.0, 2500.0), ("-1,,", -1.0, None)],
)
def test_moments_of_a_trace(tmp_path: Path, times: str, created: float, deleted: float | None) -> None:
    [pod] = read_pods(file(tmp_path, "pods.csv", f"{PODS}a,1000,2000,1,460,,LS,Running,{times}\n"))
    assert (pod.created, pod.deleted) == (created, deleted)


@pytest.mark.parametrize("moment", ["soon", "nan", "inf", "-inf", "1,5", "0x10"])
def test_a_moment_that_is_no_number_of_seconds_is_refused(tmp_path: Path, moment: str) -> None:
    path = file(tmp_path, "pods.csv", f'{PODS}a,1000,2000,1,460,,LS,Running,"{moment}",,\n')
    with pytest.raises(BadInput, match="row a: creation_time must be a number of seconds, got"):
        read_pods(path)


def test_a_pod_without_a_moment_that_can_be_read_is_refused(tmp_path: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "yesterday"}, "spec": {}}
    with pytest.raises(BadInput, match="not a Kubernetes object: Invalid RFC3339 encoded datetime"):
        read_pods(file(tmp_path, "p.json", json.dumps(pod)))


def test_a_missing_file_and_a_pod_that_admission_would_refuse(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*none\.csv: No such file or directory"):
        read_nodes(tmp_path / "none.csv")
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpumem": "-1"}}}]},
    }
    with pytest.raises(
        BadInput,
        match=r'pod default/p: container "c": nvidia.com/gpumem must be an integer from 1 to 2147483647, got -1',
    ):
        read_pods(file(tmp_path, "p.json", json.dumps(pod)))


ASKS = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
DUMPED: list[dict[str, Any]] = [
    {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.count": "1"}, "annotations": {"a": "b"}},
        "status": {"capacity": ASKS, "allocatable": ASKS},
    },
    {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": ASKS, "requests": ASKS}}]},
        "status": {"phase": "Running"},
    },
]


@pytest.mark.parametrize("dumped", DUMPED, ids=["node", "pod"])
def test_any_object_of_a_dump_is_read_or_refused_in_one_line(tmp_path: Path, dumped: dict[str, Any]) -> None:
    refused = 0
    for read, other in ((read_nodes, DUMPED[0]), (read_pods, DUMPED[1])):
        for changed in distorted(dumped):
            path = file(tmp_path, "d.json", json.dumps({"kind": "List", "items": [other, changed]}))
            try:
                read(path)
            except BadInput as problem:
                assert len(str(problem).splitlines()) == 1, changed
                refused += 1
    assert refused > 20


@pytest.mark.parametrize("text", [*ODD_TEXTS, nested(1200)])
def test_any_text_is_read_or_refused_in_one_line(tmp_path: Path, text: str) -> None:
    for name in ("d.yaml", "d.json"):
        with pytest.raises(BadInput) as refused:
            read_nodes(file(tmp_path, name, text))
        assert len(str(refused.value).splitlines()) == 1


def test_a_moment_in_yaml_needs_no_quotes(tmp_path: Path) -> None:
    meta = "{name: p, creationTimestamp: 2026-01-01T00:00:05Z}"
    text = f"kind: Pod\nmetadata: {meta}\nspec: {{containers: [{{name: c}}]}}\n"
    [pod] = read_pods(file(tmp_path, "p.yaml", text))
    assert pod.created == 1767225605.0
