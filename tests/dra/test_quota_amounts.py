"""What claims count in quotas before they are prepared: never less than what they may get."""

from typing import Any

import pytest

from lamina.core.gpus import Gpu, Inventory
from lamina.dra.names import DRIVER
from lamina.dra.quota_amounts import (
    ClaimAmounts,
    ClusterGpus,
    allocated_amounts,
    cluster_gpus,
    requested_amounts,
)

GPUS = ClusterGpus(largest_mib=40960, node_mib=81920)


def exactly(name: str = DRIVER, *, memory: str = "", cores: str = "", **more: Any) -> dict[str, Any]:
    amounts = ({"memory": memory} if memory else {}) | ({"cores": cores} if cores else {})
    return {"deviceClassName": name, **({"capacity": {"requests": amounts}} if amounts else {}), **more}


def profile(name: str, *further: str) -> dict[str, Any]:
    expressions = [f"device.attributes['{DRIVER}'].profile == '{name}'", *further]
    return {"selectors": [{"cel": {"expression": each}} for each in expressions]}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (exactly(), (40960, 0)),
        (exactly(memory="4Gi", cores="30"), (4096, 30)),
        (exactly(memory="4Gi", count=3), (12288, 0)),
        (exactly(count=2), (81920, 0)),
        (exactly(allocationMode="All"), (81920, 0)),
        (exactly(adminAccess=True), (0, 0)),
        (exactly("nic.example.com"), (0, 0)),
        (exactly("mig.nvidia.com", **profile("1g.5gb")), (5120, 0)),
        (exactly("mig.nvidia.com", **profile("1g.5gb+me", "true")), (5120, 0)),
        (exactly("mig.nvidia.com", **profile("1g.5gb' || 'a' == 'a")), (40960, 0)),
        (exactly("mig.nvidia.com"), (40960, 0)),
        (exactly(memory="odd", cores="odd"), (40960, 100)),
    ],
)
def test_a_request_counts_as_the_largest_that_it_may_come_to(request_: Any, expected: tuple[int, int]) -> None:
    names = {DRIVER, "mig.nvidia.com"}
    found = requested_amounts([{"name": "one", "exactly": request_}], names.__contains__, GPUS)
    assert found == ClaimAmounts(*expected)


def test_alternatives_count_as_the_largest_and_requests_together() -> None:
    first = {"firstAvailable": [exactly(memory="1Gi", cores="90"), exactly(memory="8Gi"), exactly("nic.example.com")]}
    found = requested_amounts([first, {"exactly": exactly(memory="2Gi")}], DRIVER.__eq__, GPUS)
    assert found == ClaimAmounts(10240, 90)


def test_an_allocation_counts_as_its_devices() -> None:
    results = [
        {"device": "gpu-0", "consumedCapacity": {"memory": "4Gi", "cores": "30"}},
        {"device": "gpu-1"},
        {"device": "gpu-2-mig-1g5gb-19-0"},
        {"device": "gpu-3", "adminAccess": True},
    ]
    assert allocated_amounts(results, GPUS) == ClaimAmounts(4096 + 40960 + 5120, 30)


def test_the_largest_gpu_is_of_any_node() -> None:
    def node(name: str, *sizes: int) -> Inventory:
        gpus = tuple(Gpu(uuid=f"{n}", index=n, model="", memory_mib=s, capacity_mib=s) for n, s in enumerate(sizes))
        return Inventory(node=name, gpus=gpus)

    assert cluster_gpus([node("a", 10, 20), node("b", 25), node("c")]) == ClusterGpus(25, 30)
    assert cluster_gpus([]).largest_mib > 10**9, "an unknown size is not zero"
