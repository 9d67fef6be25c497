"""Resource claims: made from templates, released when the last pod has ended, protected until then."""

from typing import Any

from lamina.ports.kube import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object
from lamina_lab.controllers.resource_claim.plan import ENTRY, PROTECTION
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess
from tests.worlds.clocks import settle

DEVICES: Object = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}
ALLOCATED: Object = {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "p", "device": "x"}]}}


async def template(cluster: LabInProcess) -> None:
    spec = {"metadata": {"labels": {"team": "a"}}, "spec": {"devices": DEVICES}}
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one-gpu"}, "spec": spec})


async def pod(cluster: LabInProcess, name: str, **source: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [{"name": "gpu", **source}]}
    made = await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    await settle()
    return made


async def reserve(cluster: LabInProcess, claim: str, *pods: Object) -> None:
    """As the scheduler does: the finalizer, then the allocation for these pods."""
    await cluster.change(RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": [PROTECTION]}})
    users = [{"resource": "pods", "name": objects.name(each), "uid": objects.uid(each)} for each in pods]
    await cluster.change(RESOURCE_CLAIMS, claim, {"status": {"allocation": ALLOCATED, "reservedFor": users}}, "status")
    await settle()


async def end(cluster: LabInProcess, name: str) -> None:
    await cluster.change(PODS, name, {"status": {"phase": "Succeeded"}}, "status")
    await settle()


def claims(cluster: LabInProcess) -> list[Object]:
    return cluster.all(RESOURCE_CLAIMS)


async def test_a_pod_gets_a_claim_from_its_template_once(cluster: LabInProcess) -> None:
    await template(cluster)
    made = await pod(cluster, "p", resourceClaimTemplateName="one-gpu")
    [claim] = claims(cluster)
    assert objects.name(claim).startswith("p-gpu-")
    assert objects.annotations(claim)[ENTRY] == "gpu"
    assert objects.labels(claim) == {"team": "a"}
    assert (objects.controller(claim) or {})["uid"] == objects.uid(made)
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    named = objects.status(await cluster.get(PODS, "p"))["resourceClaimStatuses"]
    assert named == [{"name": "gpu", "resourceClaimName": objects.name(claim)}]


async def test_a_template_may_come_later_than_the_pod(cluster: LabInProcess) -> None:
    await pod(cluster, "p", resourceClaimTemplateName="one-gpu")
    assert claims(cluster) == []
    [event] = cluster.events("FailedResourceClaimCreation")
    assert 'resource claim template "one-gpu" not found' in event["message"]
    await template(cluster)
    await settle()
    assert len(claims(cluster)) == 1


async def test_an_existing_claim_is_used_as_it_is(cluster: LabInProcess) -> None:
    await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": {"devices": DEVICES}})
    await pod(cluster, "p", resourceClaimName="shared")
    assert [objects.name(claim) for claim in claims(cluster)] == ["shared"]
    assert "resourceClaimStatuses" not in objects.status(await cluster.get(PODS, "p"))


async def test_a_claim_is_released_when_its_last_pod_has_ended(cluster: LabInProcess) -> None:
    await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": {"devices": DEVICES}})
    pods = [await pod(cluster, name, resourceClaimName="shared") for name in ("p", "q")]
    await reserve(cluster, "shared", *pods)
    await end(cluster, "p")
    [claim] = claims(cluster)
    assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["q"]
    assert claim["status"]["allocation"] == ALLOCATED
    await end(cluster, "q")
    [claim] = claims(cluster)
    assert not objects.status(claim).get("allocation")
    assert not objects.status(claim).get("reservedFor")
    assert "finalizers" not in claim["metadata"]


async def test_a_claim_of_an_ended_pod_is_deleted(cluster: LabInProcess) -> None:
    await template(cluster)
    made = await pod(cluster, "p", resourceClaimTemplateName="one-gpu")
    await reserve(cluster, objects.name(claims(cluster)[0]), made)
    await end(cluster, "p")
    assert claims(cluster) == []


async def test_a_claim_of_a_deleted_pod_is_deleted_once_it_is_free(cluster: LabInProcess, kubelet: Kubelet) -> None:
    await template(cluster)
    made = await pod(cluster, "p", resourceClaimTemplateName="one-gpu")
    await reserve(cluster, objects.name(claims(cluster)[0]), made)
    await cluster.delete(PODS, "p")
    await settle()
    assert cluster.all(PODS) == []
    assert claims(cluster) == []


async def test_a_pod_of_the_same_name_is_another_user(cluster: LabInProcess) -> None:
    await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": {"devices": DEVICES}})
    made = await pod(cluster, "p", resourceClaimName="shared")
    await reserve(cluster, "shared", {**made, "metadata": {**made["metadata"], "uid": "another"}})
    assert not objects.status(claims(cluster)[0]).get("allocation")


async def test_a_claim_in_use_is_not_deleted(cluster: LabInProcess) -> None:
    await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": {"devices": DEVICES}})
    made = await pod(cluster, "p", resourceClaimName="shared")
    await reserve(cluster, "shared", made)
    await cluster.delete(RESOURCE_CLAIMS, "shared")
    await settle()
    [claim] = claims(cluster)
    assert objects.is_deleting(claim)
    assert claim["status"]["allocation"] == ALLOCATED
    await end(cluster, "p")
    assert claims(cluster) == []
