"""StatefulSets: pods by ordinal, one after the other or all at once, and updates from the highest down."""

from typing import Any

import pytest

from lamina.ports.kube import PODS, STATEFUL_SETS
from lamina_lab.controllers.framework.kinds import CONTROLLER_REVISIONS
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess, Pod, template
from tests.worlds.clocks import settle

REVISION = "controller-revision-hash"


def stateful_set(replicas: int = 3, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": body}


def names(cluster: LabInProcess) -> list[str]:
    return sorted(objects.name(pod) for pod in cluster.pods())


def images(cluster: LabInProcess) -> dict[str, str]:
    return {objects.name(pod): pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


async def set_image(cluster: LabInProcess, image: str) -> None:
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await cluster.change(STATEFUL_SETS, "web", body)
    await settle(2000)


async def status(cluster: LabInProcess) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(STATEFUL_SETS, "web"))["status"]
    return found


async def answer(kubelet: Kubelet, phases: dict[str, str | None]) -> None:
    """The kubelet makes these pods so, all others Running."""

    def phase(pod: Pod) -> str | None:
        return phases.get(objects.name(pod), "Running")

    kubelet.answer = phase
    await kubelet.again()
    await settle(2000)


async def test_pods_have_stable_names_and_are_created_in_order(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await answer(kubelet, {"web-1": None})
    await cluster.create(STATEFUL_SETS, stateful_set(serviceName="db"))
    await settle(2000)
    assert names(cluster) == ["web-0", "web-1"]  # the third waits for the second
    await answer(kubelet, {})
    assert names(cluster) == ["web-0", "web-1", "web-2"]

    pod = await cluster.get(PODS, "web-1")
    found = await status(cluster)
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-1",
        "apps.kubernetes.io/pod-index": "1",
        REVISION: found["updateRevision"],
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "db")
    counts = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert [found[count] for count in counts] == [3] * 5
    assert found["currentRevision"] == found["updateRevision"]
    messages = {event["message"] for event in cluster.events("SuccessfulCreate")}
    assert messages == {f"create Pod web-{number} in StatefulSet web successful" for number in range(3)}


async def test_a_lost_pod_comes_back_under_its_name(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(STATEFUL_SETS, stateful_set())
    await settle(2000)
    before = await cluster.get(PODS, "web-1")
    await cluster.delete(PODS, "web-1")
    await settle(2000)
    after = await cluster.get(PODS, "web-1")
    assert objects.uid(before) != objects.uid(after)
    await answer(kubelet, {"web-1": "Failed"})
    await answer(kubelet, {})
    again = await cluster.get(PODS, "web-1")
    assert (objects.phase(again), names(cluster)) == ("Running", ["web-0", "web-1", "web-2"])
    assert objects.uid(again) != objects.uid(after)


async def test_scale_down_removes_the_highest_first_and_waits(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(STATEFUL_SETS, stateful_set(4))
    await settle(3000)
    await answer(kubelet, {"web-0": "Failed"})
    kubelet.answer = lambda pod: None  # the new web-0 does not start
    await cluster.change(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await settle(2000)
    assert names(cluster) == ["web-0", "web-1", "web-2", "web-3"]
    await answer(kubelet, {})
    assert names(cluster) == ["web-0"]
    events = sorted(cluster.events("SuccessfulDelete"), key=objects.version)
    removed = [event["message"].split()[2] for event in events]
    assert removed[-3:] == ["web-3", "web-2", "web-1"]


async def test_parallel_creates_and_removes_all_at_once(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await answer(kubelet, dict.fromkeys(f"web-{number}" for number in range(5, 9)))
    wanted = stateful_set(4, podManagementPolicy="Parallel", ordinals={"start": 5})
    await cluster.create(STATEFUL_SETS, wanted)
    await settle(2000)
    assert names(cluster) == ["web-5", "web-6", "web-7", "web-8"]
    await cluster.change(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await settle(2000)
    assert names(cluster) == ["web-5"]


async def test_a_partition_keeps_lower_pods_on_the_old_template(cluster: LabInProcess, kubelet: Kubelet) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await cluster.create(STATEFUL_SETS, stateful_set(4, updateStrategy=strategy))
    await settle(3000)
    await set_image(cluster, "busybox:2")
    assert images(cluster) == {f"web-{number}": f"busybox:{1 if number < 2 else 2}" for number in range(4)}
    found = await status(cluster)
    assert (found["currentReplicas"], found["updatedReplicas"]) == (2, 2)
    assert found["currentRevision"] != found["updateRevision"]

    await cluster.delete(PODS, "web-0")
    await settle(2000)
    assert images(cluster)["web-0"] == "busybox:1"
    await cluster.change(STATEFUL_SETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await settle(3000)
    assert set(images(cluster).values()) == {"busybox:2"}
    found = await status(cluster)
    assert (found["currentReplicas"], found["currentRevision"]) == (4, found["updateRevision"])


@pytest.mark.parametrize(("amount", "gone"), [(1, {"web-3"}), (2, {"web-3", "web-2"}), ("60%", {"web-3", "web-2"})])
async def test_an_update_replaces_as_many_as_may_be_unavailable(
    cluster: LabInProcess, kubelet: Kubelet, amount: int | str, gone: set[str]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": amount}}
    await cluster.create(STATEFUL_SETS, stateful_set(4, podManagementPolicy="Parallel", updateStrategy=strategy))
    await settle(3000)
    kubelet.answer = lambda pod: None
    await set_image(cluster, "busybox:2")
    assert {name for name, image in images(cluster).items() if image == "busybox:2"} == gone
    await answer(kubelet, {})
    assert set(images(cluster).values()) == {"busybox:2"}


async def test_on_delete_leaves_pods_until_they_are_deleted(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(STATEFUL_SETS, stateful_set(2, updateStrategy={"type": "OnDelete"}))
    await settle(2000)
    await set_image(cluster, "busybox:2")
    assert set(images(cluster).values()) == {"busybox:1"}
    await cluster.delete(PODS, "web-0")
    await settle(2000)
    assert images(cluster) == {"web-0": "busybox:2", "web-1": "busybox:1"}


async def test_revisions_are_numbered_reused_and_forgotten(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(STATEFUL_SETS, stateful_set(1, revisionHistoryLimit=1))
    await settle(1000)
    for image in ("busybox:2", "busybox:3", "busybox:2"):
        await set_image(cluster, image)
    found = {
        each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"]
        for each in cluster.all(CONTROLLER_REVISIONS)
    }
    assert found == {"busybox:2": 4, "busybox:3": 3}  # the old one is the newest again, the first is forgotten
    await cluster.delete(STATEFUL_SETS, "web")
    await settle(1000)
    assert cluster.all(CONTROLLER_REVISIONS) == []


async def test_only_pods_with_a_name_of_the_set_are_adopted(cluster: LabInProcess, kubelet: Kubelet) -> None:
    for name in ("web-0", "web-x", "other-1"):
        pod = {"metadata": {"name": name, "namespace": "default", **template({"app": "web"})["metadata"]}}
        await cluster.create(PODS, pod | {"spec": template({})["spec"]})
    await cluster.create(STATEFUL_SETS, stateful_set(1, updateStrategy={"type": "OnDelete"}))
    await settle(2000)
    owned = {objects.name(pod): bool(objects.controller(pod)) for pod in cluster.pods()}
    assert owned == {"web-0": True, "web-x": False, "other-1": False}


async def test_a_refused_pod_is_reported_and_tried_again(cluster: LabInProcess, kubelet: Kubelet) -> None:
    cluster.admission.refusal = "no GPU"
    await cluster.create(STATEFUL_SETS, stateful_set(1))
    await settle(1000)
    (event,) = cluster.events("FailedCreate")
    assert event["message"].startswith("create Pod web-0 in StatefulSet web failed error: ")
    assert "no GPU" in event["message"]
    cluster.admission.refusal = ""
    await cluster.clock.advance(6)
    await settle(2000)
    assert names(cluster) == ["web-0"]
