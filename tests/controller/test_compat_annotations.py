"""The annotations on a bound pod, byte for byte as their systems write them."""

import json

import pytest

from lamina.controller.compatibility import binding_metadata
from lamina.ports.kube import BindingMetadata
from tests.controller.compat_grants import POD, grant, partitioned


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
