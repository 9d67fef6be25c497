"""ReplicaSets: how many pods, which ones go first, refusals that are not answered with a storm."""

from itertools import pairwise
from typing import Any

import pytest

from lamina.ports.kube import PODS
from lamina_lab.controllers.framework import replicas
from lamina_lab.controllers.framework.kinds import REPLICA_SETS
from lamina_lab.controllers.replicaset import plan
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess, template
from tests.worlds.clocks import settle

NOW = 1_800_000_000.0
NOW_TEXT = "2027-01-15T08:00:00Z"


def pod(name: str, **fields: Any) -> dict[str, Any]:
    """A running, ready pod on node n1 since long ago; `fields` say what is different."""
    ready = {
        "type": "Ready",
        "status": str(fields.get("ready", True)),
        "lastTransitionTime": fields.get("since", "2027-01-01T00:00:00Z"),
    }
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": fields.get("born", "2027-01-01T00:00:00Z"),
            "annotations": fields.get("annotations", {}),
            **({"deletionTimestamp": NOW_TEXT} if fields.get("deleting") else {}),
        },
        "spec": {"nodeName": fields.get("node", "n1")},
        "status": {
            "phase": fields.get("phase", "Running"),
            "conditions": [ready],
            "containerStatuses": [{"restartCount": fields.get("restarts", 0)}],
        },
    }


MISSED_LEAST_FIRST = [
    pod("without a node", node="", phase="Pending", ready=False),
    pod("pending", phase="Pending", ready=False),
    pod("lost", phase="Unknown", ready=False),
    pod("not ready", ready=False),
    pod("cheap", annotations={plan.DELETION_COST: "-5"}),
    pod("on the full node"),
    pod("just ready", node="n2", since=NOW_TEXT),
    pod("restarted", node="n3", restarts=4),
    pod("young", node="n4", born=NOW_TEXT),
    pod("old", node="n5"),
    pod("dear", node="n6", annotations={plan.DELETION_COST: "5"}),
]


@pytest.mark.parametrize(("first", "second"), list(pairwise(MISSED_LEAST_FIRST)), ids=objects.name)
def test_which_pod_goes_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    crowd = [pod("neighbor", annotations={plan.DELETION_COST: "9"})]
    for order in ([first, second], [second, first]):
        (gone,) = plan.to_delete([*order, *crowd], 1, NOW)
        assert objects.name(gone) == objects.name(first)


def test_pods_that_are_over_or_going_count_for_nothing() -> None:
    pods = [pod("a"), pod("b", deleting=True), pod("c", phase="Failed"), pod("d", phase="Succeeded")]
    assert plan.missing({"spec": {"replicas": 3}}, pods) == 2
    assert plan.missing({"spec": {"replicas": 0}}, pods) == -1
    assert [objects.name(each) for each in plan.to_delete(pods, 4, NOW)] == ["a"]


def test_availability_waits_for_min_ready_seconds() -> None:
    fresh = pod("a", since="2027-01-15T07:59:55Z")
    assert replicas.is_available(fresh, 0, NOW)
    assert not replicas.is_available(fresh, 10, NOW)
    assert replicas.available_in([fresh], 10, NOW) == 5.0
    assert replicas.is_available(fresh, 10, NOW + 5)
    assert replicas.available_in([fresh], 10, NOW + 5) is None


@pytest.mark.parametrize(("failures", "wait"), [(0, 0), (1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (9, 30)])
def test_pods_that_fail_as_a_whole_are_replaced_ever_more_slowly(failures: int, wait: float) -> None:
    pods = [pod(f"f{number}", phase="Failed", born=NOW_TEXT) for number in range(failures)]
    assert plan.creation_delay(pods, NOW) == wait
    assert plan.creation_delay(pods, NOW + wait) == 0


def test_only_the_newest_failures_are_kept() -> None:
    pods = [pod(f"f{number:02}", phase="Failed", born=f"2027-01-15T07:{number:02}:00Z") for number in range(13)]
    assert [objects.name(each) for each in plan.surplus_failures(pods)] == ["f00", "f01", "f02"]


def replica_set(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels)}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


async def test_a_refusal_is_met_by_one_pod_at_a_time_and_ever_more_slowly(cluster: LabInProcess) -> None:
    cluster.admission.refusal = "no GPU is that large"
    await cluster.create(REPLICA_SETS, replica_set(50))
    await settle(1000)
    assert cluster.admission.asked == 1
    asked_at = []
    for second in range(1, 200):
        before = cluster.admission.asked
        await cluster.clock.advance(1)
        if cluster.admission.asked > before:
            asked_at.append(second)
            assert cluster.admission.asked == before + 1
    assert asked_at == [1, 3, 7, 15, 31, 63, 123, 183]
    (event,) = cluster.events("FailedCreate")
    assert "no GPU is that large" in event["message"]
    assert event["count"] > 1


async def test_a_new_spec_is_tried_at_once(cluster: LabInProcess, kubelet: Kubelet) -> None:
    cluster.admission.refusal = "no GPU is that large"
    await cluster.create(REPLICA_SETS, replica_set(4))
    await settle(500)
    await cluster.clock.advance(40)
    cluster.admission.refusal = ""
    await cluster.change(REPLICA_SETS, "web", {"spec": {"replicas": 6}})
    await settle(1000)
    assert len(cluster.pods()) == 6


async def test_pods_that_a_node_refuses_for_good_do_not_become_a_storm(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.answer = lambda pod: "Failed"
    await cluster.create(REPLICA_SETS, replica_set(1))
    await settle(1000)
    await cluster.clock.advance(120)
    assert 5 <= len(cluster.all(PODS)) <= 12


async def test_a_pod_that_disappears_is_replaced(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(REPLICA_SETS, replica_set(3))
    await settle(1000)
    lost = cluster.pods()[0]["metadata"]["name"]
    await cluster.delete(PODS, lost)
    await settle(1000)
    assert len(cluster.pods()) == 3
    assert lost not in {objects.name(each) for each in cluster.pods()}
    status = (await cluster.get(REPLICA_SETS, "web"))["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 3, 3)


async def test_a_relabelled_pod_is_let_go_and_replaced(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(REPLICA_SETS, replica_set(2))
    await settle(1000)
    name = cluster.pods()[0]["metadata"]["name"]
    await cluster.change(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
    await settle(1000)
    assert len(cluster.pods()) == 3
    assert objects.controller(await cluster.get(PODS, name)) is None


async def test_an_orphan_that_matches_is_adopted(cluster: LabInProcess, kubelet: Kubelet) -> None:
    orphan = {"metadata": {"name": "orphan", "labels": {"app": "web"}}, "spec": template({})["spec"]}
    await cluster.create(PODS, orphan)
    await cluster.create(REPLICA_SETS, replica_set(2))
    await settle(1000)
    assert len(cluster.pods()) == 2
    owner = objects.controller(await cluster.get(PODS, "orphan"))
    assert owner is not None
    assert owner["name"] == "web"


async def test_minimum_readiness_makes_pods_available_in_time(cluster: LabInProcess, kubelet: Kubelet) -> None:
    wanted = replica_set(2)
    wanted["spec"]["minReadySeconds"] = 10
    await cluster.create(REPLICA_SETS, wanted)
    await settle(1000)
    status = (await cluster.get(REPLICA_SETS, "web"))["status"]
    assert (status["readyReplicas"], status["availableReplicas"]) == (2, 0)
    await cluster.clock.advance(12)
    assert (await cluster.get(REPLICA_SETS, "web"))["status"]["availableReplicas"] == 2
