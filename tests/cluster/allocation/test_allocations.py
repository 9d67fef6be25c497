"""The lab's scheduler gives claims the devices that kube-scheduler gives them, over generated devices and claims.

Needs KUBE_BIN_DIR with kube-apiserver, kube-scheduler and etcd of Kubernetes 1.36 or later, and no rights.
`LAMINA_ALLOCATION_SEED` draws other cases, and `LAMINA_ALLOCATION_CASES` is their number.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.control_plane import ControlPlane, NoPrograms, control_plane, programs
from lamina.ports.kube import DEVICE_CLASSES, NAMESPACES, Object
from lamina_lab.kubernetes.quantities import parse
from lamina_lab.scheduler.devices.allocator import Allocator
from lamina_lab.scheduler.devices.search import AllocationError
from tests.cluster.allocation.inventories import device_classes, slices
from tests.cluster.allocation.scheduled import OneNode
from tests.cluster.allocation.wishes import NAMESPACE, claims

CASES = int(os.environ.get("LAMINA_ALLOCATION_CASES") or 60)
SEED = int(os.environ.get("LAMINA_ALLOCATION_SEED") or 1)
PODS = 8
AT_ONCE = 12
SCHEDULER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ADMIN = {"resource.kubernetes.io/admin-access": "true"}


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    try:
        programs()
    except NoPrograms as error:
        pytest.skip(str(error))
    async with control_plane(tmp_path) as found:
        if found.version < (1, 36):
            pytest.skip("Kubernetes before 1.36 has no counters and no consumable capacity unless gates are set")
        async with found.scheduler(SCHEDULER):
            yield found


def comparable(allocation: Object) -> Object:
    """What both must agree on: all but random identities, the time, and how quantities are written."""
    devices = allocation["devices"]
    results = [
        {
            **{key: value for key, value in each.items() if key != "shareID"},
            "shared": "shareID" in each,
            "consumedCapacity": {name: parse(value) for name, value in (each.get("consumedCapacity") or {}).items()},
        }
        for each in devices["results"]
    ]
    return {"results": results, "config": devices.get("config") or [], "where": allocation.get("nodeSelector") or {}}


def lab(node: OneNode, classes: list[Object], wanted: list[Object]) -> tuple[list[Object] | None, str]:
    allocator = Allocator(node.slices, classes, node.allocated, lambda: "share")
    try:
        found = allocator.allocate(node.node, wanted)
    except AllocationError as error:
        return None, str(error)
    return found, "cannot allocate all claims"


async def differences(control: ControlPlane, classes: list[Object], case: int, seen: "Counter[str]") -> list[str]:
    """Pods come to one node, and now and then one goes. What both answer, where it is not the same."""
    random = Random(f"{SEED} {case}")
    node = OneNode(control.kube, case)
    await node.begin(slices(random, case))
    placed: dict[str, list[Object]] = {}
    found: list[str] = []
    for number in range(PODS):
        if placed and random.random() < 0.2:
            name = random.choice(sorted(placed))
            await node.delete(name, placed.pop(name))
        name = f"case-{case}-{number}"
        wanted = await node.created(claims(random, name))
        ours, why = lab(node, classes, wanted)
        theirs, reason = await node.scheduled(name, wanted)
        seen["refused" if theirs is None else "allocated"] += 1
        if theirs is not None:
            placed[name] = wanted
        if comparables(ours) != comparables(theirs):
            asked = [each["spec"] for each in wanted]
            found.append(f"{name}: {asked}\n lab:  {comparables(ours)} {why}\n kube: {comparables(theirs)} {reason}")
    return found


def comparables(allocations: list[Object] | None) -> Any:
    return None if allocations is None else [comparable(each) for each in allocations]


async def test_the_lab_allocates_as_kube_scheduler_does(control: ControlPlane, capsys: Any) -> None:
    await control.kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": ADMIN}})
    classes = [await control.kube.create(DEVICE_CLASSES, each) for each in device_classes()]
    seen: Counter[str] = Counter()
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(case: int) -> list[str]:
        async with turns:
            return await differences(control, classes, case, seen)

    found = [each for case in await asyncio.gather(*map(one, range(CASES))) for each in case]
    assert not found, f"{len(found)} of {sum(seen.values())} answers differ, with seed {SEED}:\n" + "\n".join(
        found[:20]
    )
    assert min(seen["allocated"], seen["refused"]) > sum(seen.values()) / 10, seen
