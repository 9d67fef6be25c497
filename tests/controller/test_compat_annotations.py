"""The annotations on a bound pod, byte for byte as their systems write them."""

import json

import pytest

from lamina.controller.compat.annotations import binding_metadata
from lamina.model.gpus import Gpu, Inventory, MigInstance, Mode
from lamina.model.grants import ContainerGrant, Grant, Share
from lamina.ports.kube import BindingMetadata, Object

POD: Object = {"spec": {"initContainers": [{"name": "early"}], "containers": [{"name": "plain"}, {"name": "main"}]}}


def grant(dialect: str) -> Grant:
    def share(gpu: str, memory: int, cores: int) -> Share:
        return Share(gpu=gpu, memory_mib=memory, cores=cores)

    return Grant(
        pod="p",
        pod_uid="uid",
        node="node-1",
        dialect=dialect,
        containers=(
            ContainerGrant(name="early", shares=(share("GPU-a", 100, 0),), init=True),
            ContainerGrant(name="main", shares=(share("GPU-a", 3000, 30), share("GPU-b", 3000, 30))),
        ),
    )


@pytest.mark.parametrize(
    ("dialect", "key", "encoded"),
    [
        ("hami", "hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,100,0:;;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;"),
        ("volcano", "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,100,0:;;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:"),
    ],
)
def test_devices_are_encoded_as_each_system_does(dialect: str, key: str, encoded: str) -> None:
    assert binding_metadata(POD, grant(dialect), 1700000000.9).annotations[key] == encoded


def test_volcanos_time_says_that_all_is_done() -> None:
    assert binding_metadata(POD, grant("volcano"), 1700000000.9).annotations == {
        "volcano.sh/vgpu-node": "node-1",
        "volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,100,0:;;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:",
        "volcano.sh/devices-to-allocate": "GPU-a,NVIDIA,100,0:;;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:",
        "volcano.sh/vgpu-time": "18446744073709551615",
        "volcano.sh/bind-time": "1700000000",
        "volcano.sh/bind-phase": "success",
    }


def partitioned(dialect: str) -> tuple[Grant, Inventory]:
    """A pod whose second container has an instance."""
    share = Share(gpu="GPU-a", memory_mib=9856, cores=28, mode=Mode.MIG, mig=MigInstance(profile="2g.10gb", start=4))
    of = ContainerGrant(name="main", shares=(share,), because="mig, 2g.10gb at slice 4: the node prefers this mode")
    gpu = Gpu(uuid="GPU-a", index=0, model="A100", memory_mib=40960, capacity_mib=40960, mig_card="A100-40GB")
    inventory = Inventory(node="node-1", gpus=(gpu,))
    return Grant(pod="p", pod_uid="uid", node="node-1", dialect=dialect, containers=(of,)), inventory


def test_an_instance_is_described_as_each_system_describes_it() -> None:
    found = {}
    for dialect in ("hami", "volcano", "cce"):
        granted, inventory = partitioned(dialect)
        found[dialect] = binding_metadata(POD, granted, 0, inventory).annotations
    why = "main: mig, 2g.10gb at slice 4: the node prefers this mode"
    assert [each["lamina.dev/mode"] for each in found.values()] == [why, why, why]
    assert found["hami"]["hami.io/vgpu-devices-allocated"] == ";;GPU-a,NVIDIA,9856,28:;"
    assert json.loads(found["hami"]["hami.io/vgpu-mig-allocations"]) == [
        {
            "containerIndex": 2,
            "deviceIndex": 0,
            "gpuUUID": "GPU-a",
            "profile": "2g.10gb",
            "placement": {"start": 4, "size": 2},
        }
    ]
    assert found["volcano"]["volcano.sh/vgpu-ids-new"] == ";;GPU-a[0-4],NVIDIA,9856,28:"
    assert len(found["cce"]) == 1


def test_a_dialect_without_annotations_leaves_the_pod_alone() -> None:
    assert binding_metadata(POD, grant("cce"), 0) == BindingMetadata({}, {})
