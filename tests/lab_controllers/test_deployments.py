"""Deployments over the lab's own API: rollouts, scaling, rolling back, and what the conditions say meanwhile."""

from typing import Any

from lamina.ports.kube import PODS
from lamina_lab.controllers.deployment.revisions import REVISION
from lamina_lab.controllers.framework.kinds import DEPLOYMENTS, REPLICA_SETS
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess, deployment, template
from tests.worlds.clocks import settle


def condition(obj: dict[str, Any], kind: str) -> tuple[str, str]:
    found = objects.condition(obj, kind)
    return (found["status"], found["reason"]) if found else ("", "")


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": template({"app": "web"}, image=name)}}


async def test_a_deployment_becomes_available(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=3))
    await settle(1000)

    (replica_set,) = cluster.all(REPLICA_SETS)
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{digest}"
    pods = cluster.pods()
    assert len(pods) == 3
    assert all(pod["metadata"]["labels"]["pod-template-hash"] == digest for pod in pods)
    assert all(pod["metadata"]["name"].startswith(f"web-{digest}-") for pod in pods)

    web = await cluster.get(DEPLOYMENTS, "web")
    assert web["metadata"]["annotations"][REVISION] == "1"
    counts = {field: web["status"].get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    assert counts == {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    assert web["status"]["observedGeneration"] == web["metadata"]["generation"]
    assert condition(web, "Available") == ("True", "MinimumReplicasAvailable")
    assert condition(web, "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_a_new_template_replaces_all_pods_and_keeps_the_old_set(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=4))
    await settle(1000)
    before = {pod["metadata"]["name"] for pod in cluster.pods()}
    await cluster.change(DEPLOYMENTS, "web", image("busybox:2"))
    await settle(3000)

    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:2"}
    assert len(cluster.pods()) == 4
    assert not before & {pod["metadata"]["name"] for pod in cluster.pods()}
    sizes = sorted(each["spec"]["replicas"] for each in cluster.all(REPLICA_SETS))
    assert sizes == [0, 4]
    web = await cluster.get(DEPLOYMENTS, "web")
    assert web["metadata"]["annotations"][REVISION] == "2"
    assert condition(web, "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_going_back_to_an_older_template_uses_its_set_again(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=2))
    await settle(1000)
    first = cluster.all(REPLICA_SETS)[0]["metadata"]["uid"]
    await cluster.change(DEPLOYMENTS, "web", image("busybox:2"))
    await settle(3000)
    await cluster.change(DEPLOYMENTS, "web", image("busybox:1"))
    await settle(3000)

    sets = {each["metadata"]["uid"]: each for each in cluster.all(REPLICA_SETS)}
    assert len(sets) == 2
    assert sets[first]["spec"]["replicas"] == 2
    annotations = sets[first]["metadata"]["annotations"]
    assert annotations[REVISION] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    web = await cluster.get(DEPLOYMENTS, "web")
    assert web["metadata"]["annotations"][REVISION] == "3"


async def test_scaling_up_and_down(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=2))
    await settle(1000)
    for replicas in (5, 1, 0, 3):
        await cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}})
        await settle(2000)
        assert len(cluster.pods()) == replicas
        assert len(cluster.all(REPLICA_SETS)) == 1
        web = await cluster.get(DEPLOYMENTS, "web")
        assert web["status"]["replicas"] == replicas
        assert condition(web, "Available")[0] == "True"


async def test_scaling_in_the_middle_of_a_rollout_keeps_within_the_surge(
    cluster: LabInProcess, kubelet: Kubelet
) -> None:
    strategy = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    await cluster.create(DEPLOYMENTS, deployment(replicas=4, strategy=strategy))
    await settle(2000)
    kubelet.answer = lambda pod: "Running" if pod["spec"]["containers"][0]["image"] == "busybox:1" else None
    await cluster.change(DEPLOYMENTS, "web", image("busybox:2"))
    await settle(2000)
    assert sorted(each["spec"]["replicas"] for each in cluster.all(REPLICA_SETS)) == [2, 4]

    await cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 8}})
    await settle(2000)
    assert sum(each["spec"]["replicas"] for each in cluster.all(REPLICA_SETS)) == 10
    kubelet.answer = lambda pod: "Running"
    await kubelet.again()
    await settle(5000)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:2"}
    assert len(cluster.pods()) == 8


async def test_a_paused_deployment_scales_but_does_not_roll(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=2))
    await settle(1000)
    await cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await cluster.change(DEPLOYMENTS, "web", image("busybox:2"))
    await cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
    await settle(2000)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:1"}
    assert len(cluster.pods()) == 3

    await cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await settle(3000)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:2"}


async def test_recreate_never_runs_old_and_new_pods_together(cluster: LabInProcess, kubelet: Kubelet) -> None:
    seen: list[set[str]] = []

    def watch(pod: dict[str, Any]) -> str:
        seen.append({each["spec"]["containers"][0]["image"] for each in cluster.all(PODS)})
        return "Running"

    kubelet.answer = watch
    await cluster.create(DEPLOYMENTS, deployment(replicas=3, strategy={"type": "Recreate"}))
    await settle(1000)
    await cluster.change(DEPLOYMENTS, "web", image("busybox:2"))
    await settle(3000)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:2"}
    assert all(len(images) == 1 for images in seen)


async def test_a_rollout_that_does_not_move_misses_its_deadline_and_recovers(
    cluster: LabInProcess, kubelet: Kubelet
) -> None:
    kubelet.answer = lambda pod: None
    await cluster.create(DEPLOYMENTS, deployment(replicas=2, progressDeadlineSeconds=30))
    await settle(1000)
    assert condition(await cluster.get(DEPLOYMENTS, "web"), "Progressing")[0] == "True"
    await cluster.clock.advance(20)
    assert condition(await cluster.get(DEPLOYMENTS, "web"), "Progressing")[0] == "True"
    await cluster.clock.advance(15)
    web = await cluster.get(DEPLOYMENTS, "web")
    assert condition(web, "Progressing") == ("False", "ProgressDeadlineExceeded")
    assert condition(web, "Available") == ("False", "MinimumReplicasUnavailable")

    kubelet.answer = lambda pod: "Running"
    await kubelet.again()
    await settle(1000)
    assert condition(await cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_the_reason_of_refused_pods_is_on_the_deployment(cluster: LabInProcess, kubelet: Kubelet) -> None:
    cluster.admission.refusal = "nvidia.com/gpumem is 99999 MiB, the largest GPU has 32768 MiB"
    await cluster.create(DEPLOYMENTS, deployment(replicas=5))
    await settle(1000)
    web = await cluster.get(DEPLOYMENTS, "web")
    failure = objects.condition(web, "ReplicaFailure")
    assert failure and failure["reason"] == "FailedCreate"
    assert "the largest GPU has 32768 MiB" in failure["message"]
    (event,) = cluster.events("FailedCreate")
    assert "the largest GPU has 32768 MiB" in event["message"]

    cluster.admission.refusal = ""
    await cluster.clock.advance(5)
    await settle(2000)
    assert len(cluster.pods()) == 5
    assert objects.condition(await cluster.get(DEPLOYMENTS, "web"), "ReplicaFailure") is None


async def test_old_sets_beyond_the_history_limit_are_removed(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=1, revisionHistoryLimit=2))
    await settle(1000)
    for number in range(2, 7):
        await cluster.clock.advance(1)
        await cluster.change(DEPLOYMENTS, "web", image(f"busybox:{number}"))
        await settle(3000)
    kept = sorted(each["metadata"]["annotations"][REVISION] for each in cluster.all(REPLICA_SETS))
    assert kept == ["4", "5", "6"]


async def test_a_name_that_a_stranger_has_taken_is_avoided(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=1))
    await settle(1000)
    taken = cluster.all(REPLICA_SETS)[0]["metadata"]["name"]
    await cluster.delete(DEPLOYMENTS, "web")
    await settle(1000)
    stranger = deployment("other", replicas=0)
    stranger["metadata"]["name"] = taken
    await cluster.create(REPLICA_SETS, stranger)
    await cluster.create(DEPLOYMENTS, deployment(replicas=1))
    await settle(3000)
    web = await cluster.get(DEPLOYMENTS, "web")
    assert web["status"]["collisionCount"] == 1
    assert web["status"]["availableReplicas"] == 1


async def test_deleting_a_deployment_leaves_nothing(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await cluster.create(DEPLOYMENTS, deployment(replicas=3))
    await settle(1000)
    await cluster.delete(DEPLOYMENTS, "web")
    await settle(1000)
    await cluster.clock.advance(60)
    assert cluster.all(REPLICA_SETS) == []
    assert cluster.all(PODS) == []
