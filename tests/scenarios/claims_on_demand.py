"""Tests of MIG devices that are made for claims before their pods are bound; they run on a lab and the test cluster."""

from tests.scenarios.examples import running
from tests.scenarios.labs import Cluster, Object
from tests.scenarios.resource_claims import (
    GIB,
    HOLD,
    MIG_CLASS,
    OUT_OF_MEMORY,
    allocate,
    amounts,
    apply,
    claim,
    exactly,
    results,
    seen,
    selecting,
    share,
    slices,
    status,
    unallocated,
    user,
)
from tests.waiting import wait_until

ADMIN = "resource.kubernetes.io/admin-access"
PREPARED = "lamina.dev/Prepared"


def others(lab: Cluster) -> list[str]:
    """All nodes but that of the lab, whose GPUs are not offered for a minute after they have refused MIG."""
    nodes = [each["metadata"]["name"] for each in lab.read("/api/v1/nodes")["items"]]
    return [name for name in nodes if name != lab.node]


def gpus(lab: Cluster, node: str) -> int:
    """How many the node has."""
    return len(lab.read(f"/apis/lamina.dev/v1alpha1/inventories/{node}")["spec"]["gpus"])


def instances(lab: Cluster) -> list[str]:
    """The MIG instances on all nodes."""
    found = lab.read("/apis/lamina.dev/v1alpha1/inventories")["items"]
    every = [each for inventory in found for gpu in inventory["spec"]["gpus"] for each in gpu.get("instances", ())]
    return [f"{each['profile']} at {each['start']}" for each in every]


def partition(name: str, profile: str, node: str = "") -> tuple[Object, Object]:
    """A claim of a MIG device, and a pod with it."""
    request = exactly(MIG_CLASS, **selecting(f"gpu.profile == '{profile}'"))
    return claim(name, request), user(name, name, node=node)


def end(lab: Cluster, name: str) -> None:
    """A pod, and its claim."""
    lab.kubectl("delete", f"pod/{name}", f"resourceclaim/{name}")


def test_another_node_is_tried_where_gpus_refuse_mig(lab: Cluster) -> None:
    """Programs of an administrator keep all GPUs of the node; the others can be used later.

    It comes first: without MIG devices, a program can use a GPU only as long as its MIG mode has not been enabled.
    """
    lab.kubectl("label", "namespace", "default", f"{ADMIN}=true")
    lab.kubectl("cordon", *others(lab))
    try:
        holders = [f"admin-{index}" for index in range(gpus(lab, lab.node))]
        for index, name in enumerate(holders):
            access = exactly(adminAccess=True, **selecting(f"gpu.index == {index}"), **amounts(memory="1Mi"))
            apply(lab, claim(name, access), user(name, name, "python3", "-c", HOLD))
        running(lab, *holders)
        for name in holders:
            wait_until(lambda name=name: "holds" in lab.kubectl("logs", name), "the program has no context")
        apply(lab, *partition("mig", "1g.5gb"))

        def says() -> str:
            return lab.kubectl("describe", "pod", "mig")

        wait_until(lambda: "binding" in says() or "cannot change the MIG mode" in says(), says)
        lab.kubectl("uncordon", *others(lab))
        running(lab, "mig")
        node = lab.read("/api/v1/namespaces/default/pods/mig")["spec"]["nodeName"]
        assert node in others(lab) and {each["pool"] for each in results(lab, "mig")} == {node}
    finally:
        lab.kubectl("uncordon", *others(lab))
        lab.kubectl("label", "namespace", "default", f"{ADMIN}-")


def prepared(lab: Cluster, *names: str) -> None:
    """The pods run, and the device of each claim has the condition for which the scheduler waited."""
    running(lab, *names)
    for name in names:
        (device,), (result,) = status(lab, name)["devices"], results(lab, name)
        assert [each["type"] for each in device["conditions"]] == [PREPARED]
        assert device.get("shareID") == result.get("shareID")


def test_devices_are_prepared_before_their_pods_are_bound(lab: Cluster) -> None:
    node, *_ = others(lab)
    every = [device for each in slices(lab) for device in each["spec"].get("devices") or ()]
    assert {tuple(device["bindingConditions"]) for device in every} == {(PREPARED,)}
    share(lab, "share", node=node, memory="4Gi")
    prepared(lab, "share")
    end(lab, "share")
    apply(lab, *partition("small", "1g.5gb", node), *partition("large", "3g.20gb", node))
    prepared(lab, "small", "large")
    wait_until(lambda: len(instances(lab)) == 2, lambda: str(instances(lab)))
    assert seen(lab, "small") != seen(lab, "large")
    assert allocate(lab, "small", 4 * GIB, GIB) == ["0", OUT_OF_MEMORY]


def test_mig_devices_and_shares_of_one_gpu_exclude_each_other(lab: Cluster) -> None:
    node, *_ = others(lab)
    all_of = [f"mig-{number}" for number in range(gpus(lab, node))]
    for name in all_of:
        apply(lab, *partition(name, "7g.40gb", node))
    running(lab, *all_of)
    share(lab, "share", node=node, memory="4Gi")
    apply(lab, *partition("small", "1g.5gb", node))
    for name in ("share", "small"):
        wait_until(lambda name=name: unallocated(lab, name), lab.described)
    end(lab, "small")
    end(lab, "mig-0")
    running(lab, "share")
    assert allocate(lab, "share", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    apply(lab, *partition("small", "1g.5gb", node))
    wait_until(lambda: unallocated(lab, "small"), lab.described)
    end(lab, "share")
    running(lab, "small")
