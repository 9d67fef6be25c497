"""Nodes that fall silent are marked, their pods are given up in time, and a node that comes back is forgiven."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.ports.kube import LEASES, NODES, PODS
from lamina_lab.controllers.node.controller import LEASE_NAMESPACE
from lamina_lab.controllers.node.plan import NOT_READY, UNREACHABLE, taints_for
from lamina_lab.controllers.run import run
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.taints import eviction_delay_s
from tests.lab_controllers.cluster import Kubelet, LabInProcess, template
from tests.worlds.clocks import settle

NOW = 1_800_000_000.0


def taint(key: str, effect: str = "NoExecute") -> dict[str, Any]:
    return {"key": key, "effect": effect, "timeAdded": "2027-01-15T08:00:00Z"}


def tolerating(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"tolerations": list(tolerations)}}


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        (tolerating(), 0),
        (tolerating({"operator": "Exists"}), None),
        (tolerating({"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 30}), 30),
        (tolerating({"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 30}), 0),
        (tolerating({"key": UNREACHABLE, "operator": "Exists", "effect": "NoSchedule"}), 0),
    ],
)
def test_how_long_a_pod_may_stay(pod: dict[str, Any], seconds: float | None) -> None:
    assert eviction_delay_s(pod["spec"].get("tolerations") or (), [taint(UNREACHABLE)], NOW) == seconds
    assert eviction_delay_s(pod["spec"].get("tolerations") or (), [taint(UNREACHABLE, "NoSchedule")], NOW) is None


@pytest.mark.parametrize(("ready", "keys"), [("True", set()), ("False", {NOT_READY}), ("Unknown", {UNREACHABLE})])
@pytest.mark.parametrize("before", [[], [taint(NOT_READY)], [taint(UNREACHABLE), taint(UNREACHABLE, "NoSchedule")]])
def test_taints_follow_readiness_and_leave_others_alone(ready: str, keys: set[str], before: list[Any]) -> None:
    own = {"key": "dedicated", "effect": "NoSchedule"}
    node = {
        "spec": {"taints": [own, *before]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    after = taints_for(node, NOW)
    found = node["spec"]["taints"] if after is None else after
    assert own in found
    assert {each["key"] for each in found} - {"dedicated"} == keys
    assert taints_for({**node, "spec": {"taints": found}}, NOW) is None


@pytest.fixture
async def cluster() -> AsyncIterator[LabInProcess]:
    made = LabInProcess()
    await made.add_node("n1")
    await made.create(LEASES, {"metadata": {"name": "n1", "namespace": LEASE_NAMESPACE}, "spec": {"renewTime": "0"}})
    made.run(run(made.kube, made.clock))
    made.run(Kubelet(made.api).run())
    await settle()
    body = template({"app": "x"})
    body["spec"]["tolerations"] = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 30}]
    await made.create(PODS, {"metadata": {"name": "x", "namespace": "default"}, "spec": body["spec"]})
    await settle()
    yield made
    await made.stop()


async def renew(cluster: LabInProcess, count: int) -> None:
    body = {"spec": {"renewTime": str(count)}}
    await cluster.kube.patch(LEASES, "n1", body, namespace=LEASE_NAMESPACE)
    await settle()


async def test_a_node_that_renews_its_lease_stays_ready(cluster: LabInProcess) -> None:
    for count in range(1, 10):
        await cluster.clock.advance(5)
        await renew(cluster, count)
    node = await cluster.get(NODES, "n1")
    assert objects.condition(node, "Ready")["status"] == "True"  # type: ignore[index]
    assert not node["spec"].get("taints")


async def test_a_silent_node_is_marked_and_its_pods_are_given_up(cluster: LabInProcess) -> None:
    await cluster.clock.advance(8)
    assert not (await cluster.get(NODES, "n1"))["spec"].get("taints")
    await cluster.clock.advance(4)
    node = await cluster.get(NODES, "n1")
    ready = objects.condition(node, "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert {(each["key"], each["effect"]) for each in node["spec"]["taints"]} == {
        (UNREACHABLE, "NoSchedule"),
        (UNREACHABLE, "NoExecute"),
    }
    assert not objects.is_ready(await cluster.get(PODS, "x"))
    assert len(cluster.pods()) == 1
    await cluster.clock.advance(35)
    assert cluster.pods() == []
    assert len(cluster.events("TaintManagerEviction")) == 1


async def test_a_node_that_comes_back_is_forgiven(cluster: LabInProcess) -> None:
    await cluster.clock.advance(15)
    assert not objects.is_ready(await cluster.get(PODS, "x"))
    await renew(cluster, 1)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
    await cluster.change(NODES, "n1", ready, "status")
    await settle()
    assert not (await cluster.get(NODES, "n1"))["spec"].get("taints")
    assert objects.is_ready(await cluster.get(PODS, "x"))
    for count in range(2, 12):
        await cluster.clock.advance(5)
        await renew(cluster, count)
    assert len(cluster.pods()) == 1


async def test_a_cordoned_node_is_tainted_and_freed_again(cluster: LabInProcess) -> None:
    for wanted in (True, False):
        await cluster.change(NODES, "n1", {"spec": {"unschedulable": wanted}})
        await settle()
        found = (await cluster.get(NODES, "n1"))["spec"].get("taints") or []
        assert [each["key"] for each in found] == (["node.kubernetes.io/unschedulable"] if wanted else [])


async def test_pods_of_a_node_that_is_gone_are_removed(cluster: LabInProcess) -> None:
    await cluster.delete(NODES, "n1")
    await settle()
    assert cluster.all(PODS) == []
