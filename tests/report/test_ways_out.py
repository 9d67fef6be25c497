"""What a person can do for a pending pod: amounts that would fit are exact, and every cause has a sentence."""

from typing import Any

import msgspec
import pytest

from lamina.core.gpus import Inventory
from lamina.dialects import parse
from lamina.report import cluster_reader
from lamina.report.remedies import remedies
from tests.worlds.clusters import cluster, container, grant, inventory, pod


async def ways(*objects: Any, **limits: int) -> list[str]:
    """For a pod with these limits in a cluster with these objects."""
    asking = pod("asking", container(**limits))
    view = await cluster_reader.read(await cluster(asking, *objects))
    request, explanation = parse(asking, view.config), view.explain(asking)
    assert request is not None and explanation is not None
    return list(remedies(view, request, explanation))


def changed(**fields: Any) -> Inventory:
    found = inventory()
    return msgspec.structs.replace(found, gpus=tuple(msgspec.structs.replace(gpu, **fields) for gpu in found.gpus))


async def test_the_largest_amount_that_fits_is_named() -> None:
    runs = pod("runs", container(gpu=1, gpumem=12000), node="n")
    taken = grant(runs, "n", 12000)
    first, *others = await ways(inventory(), runs, taken, gpu=1, gpumem=5000)
    assert first == "It would fit now with at most 3360 MiB, on node n."
    assert len(others) == 1 and "lamina advise defrag" in others[0]
    assert await ways(inventory(), runs, taken, gpu=1, gpumem=3360) == []


async def test_an_amount_that_fails_for_another_reason_is_not_named() -> None:
    """Two GPUs are needed, and only one has memory left."""
    runs = pod("runs", container(gpu=1, gpumem=15360), node="n")
    found = await ways(inventory(gpus=2), runs, grant(runs, "n", 15360), gpu=2, gpumem=15360)
    assert not any("It would fit" in way for way in found)


async def test_what_no_pod_that_ends_can_help() -> None:
    found = await ways(inventory(), gpu=1, gpumem=99999)
    assert found[0] == "It would fit now with at most 15360 MiB, on node n."
    assert found[-1].startswith("No pod that ends makes room for it")


async def test_compute() -> None:
    found = await ways(changed(cores_capacity=50), gpu=1, gpumem=1000, gpucores=80)
    assert found[0] == "It would fit now with at most 50 % of the time, on node n."


@pytest.mark.parametrize(
    ("fields", "word"), [({"healthy": False, "reason": "XID 79"}, "healthy"), ({"cordoned": True}, "uncordon")]
)
async def test_gpus_that_take_nothing(fields: dict[str, Any], word: str) -> None:
    (way, last) = await ways(changed(**fields), gpu=1, gpumem=1000)
    assert word in way and last.startswith("No pod that ends")


async def test_a_cluster_without_gpus_says_nothing_of_its_own() -> None:
    assert await ways(gpu=1, gpumem=1000) == []
