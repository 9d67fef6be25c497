"""Pods whose devices are tainted: evicted by NoExecute unless their claims tolerate it, as rules and slices say."""

from typing import Any

import pytest

from lamina.dra.selectors import selects
from lamina.ports.kube import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Object
from lamina_lab.controllers.device_taint.plan import EVICTING
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.device_taints import added_taints, taints_of_slice
from tests.lab_controllers.cluster import Kubelet, LabInProcess
from tests.lab_scheduler.device_objects import DRIVER, claim, gpu, request, slices
from tests.worlds.clocks import settle

EVICT = {"key": "sick", "value": "fan", "effect": "NoExecute"}
FIRST = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}


def rule(taint: Object, selector: Object | None, name: str = "rule") -> Object:
    spec = {"taint": taint} | ({} if selector is None else {"deviceSelector": selector})
    return {"metadata": {"name": name}, "spec": spec}


async def running(cluster: LabInProcess, name: str, device: str, **toleration: Any) -> None:
    """A pod with a claim that has the device."""
    spec = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [{"name": "gpu"}]}
    spec["resourceClaims"][0]["resourceClaimName"] = name
    made = await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    wanted = claim(name, request())
    del wanted["metadata"]["uid"]
    await cluster.create(RESOURCE_CLAIMS, wanted)
    result = {"request": "gpu", **FIRST, "device": device} | ({"tolerations": [toleration]} if toleration else {})
    users = [{"resource": "pods", "name": name, "uid": objects.uid(made)}]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
    await cluster.change(RESOURCE_CLAIMS, name, {"status": status}, "status")
    await settle()


def names(cluster: LabInProcess) -> set[str]:
    return {objects.name(pod) for pod in cluster.pods()}


async def condition(cluster: LabInProcess, name: str = "rule") -> tuple[str, str]:
    found = objects.condition(await cluster.get(DEVICE_TAINT_RULES, name), EVICTING) or {}
    return found["status"], found["message"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"driver": DRIVER}, True),
        ({"driver": "other"}, False),
        ({"pool": "n1", "device": "gpu-0"}, True),
        ({"pool": "n2", "device": "gpu-0"}, False),
        ({"device": "gpu-1"}, False),
        (FIRST, True),
    ],
)
def test_which_devices_a_rule_selects(selector: Object | None, selected: bool) -> None:
    assert selects(rule(EVICT, selector), FIRST) is selected
    assert bool(added_taints([rule(EVICT, selector)], FIRST)) is selected


def test_a_taint_counts_from_the_creation_of_its_rule_unless_it_says_when() -> None:
    made = rule(EVICT, {})
    made["metadata"]["creationTimestamp"] = "2026-11-01T00:00:00Z"
    assert added_taints([made], FIRST) == ({**EVICT, "timeAdded": "2026-11-01T00:00:00Z"},)
    made["spec"]["taint"] = {**EVICT, "timeAdded": "2026-10-01T00:00:00Z"}
    assert added_taints([made], FIRST)[0]["timeAdded"] == "2026-10-01T00:00:00Z"


def test_taints_of_a_slice_are_those_of_the_newest_generation() -> None:
    old = slices(gpu("gpu-0", taints=[EVICT]), pool="n1", generation=1)
    new = slices(gpu("gpu-0"), gpu("gpu-1", taints=[EVICT]), pool="n1", generation=2)
    for both in ([*old, *new], [*new, *old]):
        assert taints_of_slice(both, FIRST) == ()
        assert taints_of_slice(both, {**FIRST, "device": "gpu-1"}) == (EVICT,)
    assert taints_of_slice(old, {**FIRST, "pool": "other"}) == ()


async def test_a_rule_evicts_the_pods_of_its_devices_alone(cluster: LabInProcess, kubelet: Kubelet) -> None:
    for name, device in (("a", "gpu-0"), ("b", "gpu-1")):
        await running(cluster, name, device)
    await cluster.create(DEVICE_TAINT_RULES, rule(EVICT, {"device": "gpu-0"}))
    await settle()
    assert names(cluster) == {"b"}
    [event] = cluster.events("DeviceTaintManagerEviction")
    assert event["involvedObject"]["name"] == "a"
    assert await condition(cluster) == ("False", "0 pods in 0 namespaces need to be evicted")


async def test_a_pod_that_ends_slowly_is_still_being_evicted(cluster: LabInProcess) -> None:
    await running(cluster, "a", "gpu-0")
    await cluster.change(PODS, "a", {"metadata": {"finalizers": ["example.com/wait"]}})
    await cluster.create(DEVICE_TAINT_RULES, rule(EVICT, {}))
    await settle()
    assert await condition(cluster) == ("True", "1 pod in 1 namespace needs to be evicted")
    assert len(cluster.events("DeviceTaintManagerEviction")) == 1


async def test_a_slice_evicts_too(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await running(cluster, "a", "gpu-0")
    [made] = slices(gpu("gpu-0", taints=[EVICT]), pool="n1")
    await cluster.create(RESOURCE_SLICES, made)
    await settle()
    assert names(cluster) == set()


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
async def test_other_effects_evict_nothing(effect: str, cluster: LabInProcess, kubelet: Kubelet) -> None:
    await running(cluster, "a", "gpu-0")
    await cluster.create(DEVICE_TAINT_RULES, rule({**EVICT, "effect": effect}, {}))
    await settle()
    assert names(cluster) == {"a"}
    said = {
        "NoSchedule": "the effect evicts no pods",
        "None": "the effect NoExecute would evict 1 pod in 1 namespace",
    }
    assert await condition(cluster) == ("False", said[effect])


async def test_a_toleration_of_the_claim_holds_for_as_long_as_it_says(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await running(cluster, "always", "gpu-0", key="sick", operator="Exists")
    await running(cluster, "awhile", "gpu-0", key="sick", operator="Exists", tolerationSeconds=60)
    await cluster.create(DEVICE_TAINT_RULES, rule(EVICT, {}))
    await cluster.clock.advance(50, step=10)
    assert names(cluster) == {"always", "awhile"}
    await cluster.clock.advance(20, step=10)
    assert names(cluster) == {"always"}


async def test_a_rule_that_is_deleted_in_time_evicts_nothing(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await running(cluster, "a", "gpu-0", key="sick", operator="Exists", tolerationSeconds=60)
    await cluster.create(DEVICE_TAINT_RULES, rule(EVICT, {}))
    await cluster.clock.advance(30, step=10)
    await cluster.delete(DEVICE_TAINT_RULES, "rule")
    await cluster.clock.advance(60, step=10)
    assert names(cluster) == {"a"}
